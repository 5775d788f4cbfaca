/* The library's version, here and nowhere else: ivm_version(), the package's, the shared library's and ivm.pc's are made from it. */
#ifndef IVM_VERSION_H
#define IVM_VERSION_H

#define IVM_VERSION_MAJOR 0 /* the SONAME's number: raised when a program that was built before no longer runs */
#define IVM_VERSION_MINOR 1 /* raised when something is added; while the major is 0, when something changes, too */
/* Raised when things are mended and nothing is added. */
#define IVM_VERSION_PATCH 0

/* Used below alone. */
#define IVM_VERSION__QUOTE(major, minor, patch) #major "." #minor "." #patch
#define IVM_VERSION__TEXT(major, minor, patch) IVM_VERSION__QUOTE(major, minor, patch)
/* "major.minor.patch" of the header; ivm_version() is the library's. */
#define IVM_VERSION IVM_VERSION__TEXT(IVM_VERSION_MAJOR, IVM_VERSION_MINOR, IVM_VERSION_PATCH)
/* For comparing: IVM_VERSION_NUMBER >= 10203 is 1.2.3 or later. */
#define IVM_VERSION_NUMBER (IVM_VERSION_MAJOR * 10000 + IVM_VERSION_MINOR * 100 + IVM_VERSION_PATCH)

#endif
