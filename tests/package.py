#!/usr/bin/env python3
"""package.py WAY --build BUILD --cc CC --cxx CXX --generator GENERATOR: what a stranger gets of this build, used by the project in tests/foreign
in C17 and C++17, in a directory of its own.

    installed      `cmake --install` to a prefix and to a DESTDIR: find_package(ivm) and pkg-config, shared and static
    debian         the packages of `cpack -G DEB`, unpacked into a root
    subdirectory   add_subdirectory(), which must leave the project that does so as it was
    amalgamation   ivm.c and ivm.h, without and with the optional parts
    java           the shared library in a JVM

Every way the version must be that of include/ivm/version.h."""
import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
FOREIGN = os.path.join(HERE, "foreign")
STRICT = ["-Wall", "-Wextra", "-Werror"]


def version_of_headers():
    with open(f"{ROOT}/include/ivm/version.h", encoding="utf-8") as file:
        return ".".join(re.findall(r"#define IVM_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", file.read()))


VERSION = version_of_headers()


def need(condition, what):
    if not condition:
        sys.exit(what)


def run(*command, fails=False, **environment):
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, **environment}, check=False)
    need((done.returncode != 0) == fails, f"{' '.join(command)}: {done.returncode}\n{done.stdout}")
    return done.stdout


def need_total(told, what):
    need(told == f"total 42, headers {VERSION}, library {VERSION}\n", f"{what} prints: {told}")
    print(f"{what}: {told}", end="")


def has(library):
    return subprocess.run(["pkg-config", "--exists", library.replace("zstd", "libzstd")], check=False).returncode == 0


def configure(given, work, *settings, fails=False, **environment):
    return run("cmake", "-S", FOREIGN, "-B", work, "-G", given.generator, f"-DCMAKE_C_COMPILER={given.cc}", f"-DCMAKE_CXX_COMPILER={given.cxx}",
               *settings, fails=fails, **environment)


def build_and_run(work):
    run("cmake", "--build", work, "--parallel", "2")
    for language in ("c", "cpp"):
        for library in ("ivm", "ivm_static"):
            need_total(run(f"{work}/{language}_{library}"), f"{language} with {library}")


def use_cmake(given, prefix, work):
    told = configure(given, work, "-DWAY=package", f"-DCMAKE_PREFIX_PATH={prefix}")
    need(f"ivm is {VERSION}\n" in told, told)
    build_and_run(work)


def use_pkg_config(given, prefix, work):
    path = {"PKG_CONFIG_PATH": os.path.dirname(glob.glob(f"{prefix}/**/ivm.pc", recursive=True)[0])}
    need(run("pkg-config", "--modversion", "ivm", **path) == VERSION + "\n", "ivm.pc is of another version")
    shared = run("pkg-config", "--cflags", "--libs", "ivm", **path).split()
    needed = run("pkg-config", "--cflags", "--libs", "--static", "ivm", **path).split()
    static = [word.replace("-livm", "-Wl,--whole-archive,-l:libivm.a,--no-whole-archive") for word in needed]
    folder = run("pkg-config", "--variable=libdir", "ivm", **path).strip()
    for compiler, standard, source in ((given.cc, "c17", "total.c"), (given.cxx, "c++17", "total.cpp")):
        for kind, words in (("shared", shared), ("static", static)):
            program = f"{work}/{kind}_{standard}"
            run(compiler, f"-std={standard}", *STRICT, f"{FOREIGN}/{source}", "-o", program, *words)
            need(("libivm.so" in run("readelf", "-d", program)) == (kind == "shared"), f"{program} is not {kind}")
            need_total(run(program, LD_LIBRARY_PATH=folder if kind == "shared" else ""), f"{standard} by pkg-config, {kind}")
    run(given.cc, "-static", f"{FOREIGN}/total.c", "-o", f"{work}/whole", *needed)
    need("NEEDED" not in run("readelf", "-d", f"{work}/whole"), "-static has left shared libraries")
    need_total(run(f"{work}/whole", LD_LIBRARY_PATH=""), "all static by pkg-config")


def need_layout(prefix):
    """The shared library is found by its name for the linker, by its SONAME and by its version."""
    major = VERSION.split(".", maxsplit=1)[0]
    library = glob.glob(f"{prefix}/**/libivm.so", recursive=True)[0]
    folder = os.path.dirname(library)
    need(os.path.basename(os.path.realpath(library)) == f"libivm.so.{VERSION}", f"{library} is {os.path.realpath(library)}")
    need(os.path.realpath(f"{folder}/libivm.so.{major}") == os.path.realpath(library), "the SONAME's link leads elsewhere")
    need(f"Library soname: [libivm.so.{major}]" in run("readelf", "-d", library), "the SONAME is another")
    need(os.path.exists(f"{folder}/libivm.a"), "there is no static library")
    need(run(f"{prefix}/bin/ivm", "--version") == f"ivm {VERSION}\n", "the command is of another version")
    need(os.path.exists(f"{prefix}/share/man/man1/ivm.1"), "there is no manual page")
    need_documents(f"{prefix}/share/doc/ivm")


def need_documents(folder):
    """README is there with everything that it links to."""
    with open(f"{folder}/README.md", encoding="utf-8") as file:
        links = set(re.findall(r"\]\(([^)#]+)\)", file.read()))
    need("tests/scenario.md" in links and any(link.startswith("bench/examples/") for link in links), f"README links to {links}")
    for link in links:
        need(os.path.exists(f"{folder}/{link}"), f"{folder}: README links to {link}, which is not there")


def use(given, prefix, work):
    os.makedirs(work)
    need_layout(prefix)
    use_pkg_config(given, prefix, work)
    use_cmake(given, prefix, f"{work}/cmake")


def installed(given, work):
    run("cmake", "--install", given.build, "--prefix", f"{work}/prefix")
    use(given, f"{work}/prefix", f"{work}/of_prefix")
    run("cmake", "--install", given.build, "--prefix", "/opt/ivm", DESTDIR=f"{work}/destination")
    use(given, f"{work}/destination/opt/ivm", f"{work}/of_destination")
    newer = configure(given, f"{work}/newer", "-DWAY=package", f"-DCMAKE_PREFIX_PATH={work}/prefix", "-DWANTED=47.11", fails=True)
    need(f"ivm-config.cmake, version: {VERSION}\n" in newer, newer)
    os.rename(f"{work}/prefix", f"{work}/moved")
    use(given, f"{work}/moved", f"{work}/of_moved")
    lacking(given, f"{work}/moved", f"{work}/lacking")


def lacking(given, prefix, work):
    """Where what the static library links is not there, the shared one is to be had, and asking for the other says what it lacks."""
    settings = ["-DWAY=package", f"-DCMAKE_PREFIX_PATH={prefix}"]
    nothing = {"PKG_CONFIG_LIBDIR": "/nowhere", "PKG_CONFIG_PATH": ""}
    configure(given, f"{work}/shared", *settings, "-DKINDS=shared", **nothing)
    with open(glob.glob(f"{prefix}/**/ivm.pc", recursive=True)[0], encoding="utf-8") as file:
        required = re.search(r"^Requires.private: *(\w+)", file.read(), re.M)
    if required:
        told = configure(given, f"{work}/static", *settings, fails=True, **nothing)
        need("the static library of ivm needs" in told, told)


def debian(given, work):
    run("cpack", "-G", "DEB", "--config", f"{given.build}/CPackConfig.cmake", "-B", f"{work}/packages")
    packages = sorted(glob.glob(f"{work}/packages/*.deb"))
    need(len(packages) == 3, f"there are {packages}")
    for package in packages:
        need(run("dpkg-deb", "-f", package, "Version") == VERSION + "\n", f"{package} is of another version")
        run("dpkg-deb", "-x", package, f"{work}/root")
    runtime = f"libivm{VERSION.split('.', maxsplit=1)[0]}"
    command, development, library = packages
    for name in (runtime, "libivm-dev", "ivm"):
        need(os.path.exists(f"{work}/root/usr/share/doc/{name}/copyright"), f"{name} has no copyright file")
    for folder in glob.glob(f"{work}/root/usr/**/", recursive=True)[1:]:  # that of /usr is the builder's umask's
        need(os.stat(folder).st_mode & 0o7777 == 0o755, f"{folder} is of mode {oct(os.stat(folder).st_mode)}")
    major = VERSION.split(".", maxsplit=1)[0]
    shlibs, triggers = (run("dpkg-deb", "-I", library, name) for name in ("shlibs", "triggers"))
    need(shlibs.split()[:3] == ["libivm", major, runtime], f"who links the library depends on {shlibs}")
    need("activate-noawait ldconfig\n" in triggers, f"the loader is not told: {triggers}")
    need(f"{runtime} (= {VERSION})" in run("dpkg-deb", "-f", development, "Depends"), "libivm-dev does not need the library")
    need("libc6" in run("dpkg-deb", "-f", library, "Depends"), f"{runtime} does not say what it needs")
    need("jansson" in run("dpkg-deb", "-f", command, "Depends"), "ivm does not say what it needs")
    contact(given, work, run("dpkg-deb", "-f", library, "Maintainer").strip())
    use(given, f"{work}/root/usr", f"{work}/of_root")


def contact(given, work, maintainer):
    """Who answers for a package: whom the builder names, else the builder."""
    need(re.fullmatch(r"[^<>@]+ <[^<>@ ]+@[^<>@ ]+>", maintainer) and "localhost" not in maintainer, f"the maintainer is {maintainer}")
    me = "Some One <some@one.example>"
    named = {"DEBFULLNAME": "Some One", "DEBEMAIL": "some@one.example"}
    for setting, environment in ((me, {}), ("", named), ("", {"DEBEMAIL": me})):
        arguments = ["cmake", "-S", ROOT, "-B", f"{work}/contact", "-G", given.generator, f"-DCMAKE_C_COMPILER={given.cc}", "-DIVM_TESTS=OFF",
                     "-DIVM_COMMAND=OFF"]
        run(*arguments, f"-DIVM_PACKAGE_CONTACT={setting}", **environment)
        with open(f"{work}/contact/CPackConfig.cmake", encoding="utf-8") as file:
            need(f'set(CPACK_PACKAGE_CONTACT "{me}")' in file.read(), f"IVM_PACKAGE_CONTACT={setting} {environment} makes another maintainer")
    need('is "Name <mailbox>", not Me' in run(*arguments, "-DIVM_PACKAGE_CONTACT=Me", fails=True), "a maintainer without a mailbox is taken")


def subdirectory(given, work):
    configure(given, f"{work}/build", "-DWAY=subdirectory", f"-DIVM_SOURCE={ROOT}")
    build_and_run(f"{work}/build")


def amalgamation(given, work):
    source = f"{given.build}/amalgamation"
    run(given.cc, "-std=gnu17", *STRICT, "-c", f"{source}/ivm.c", "-o", f"{work}/ivm.o")
    run(given.cc, "-std=gnu17", "-O3", "-DNDEBUG", *STRICT, "-c", f"{source}/ivm.c", "-o", f"{work}/fast.o")
    need("__assert_fail" in run("nm", f"{work}/ivm.o") and "__assert_fail" not in run("nm", f"{work}/fast.o"), "-DNDEBUG decides nothing")
    run(given.cc, "-std=gnu17", *STRICT, "-DIVM_WITH_DURABLE=0", "-fsanitize=address", "-fsyntax-only", f"{source}/ivm.c")
    # A stranger's ivm.h lies beside the program, without a folder ivm.
    os.makedirs(f"{work}/ivm")
    shutil.copy(f"{source}/ivm.h", f"{work}/ivm/ivm.h")
    for compiler, standard, name in ((given.cc, "c17", "total.c"), (given.cxx, "c++17", "total.cpp")):
        run(compiler, f"-std={standard}", *STRICT, f"-I{work}", f"{FOREIGN}/{name}", f"{work}/ivm.o", "-o", f"{work}/{standard}", "-lm", "-pthread")
        need_total(run(f"{work}/{standard}"), f"{standard} with the amalgamation")
    parts = {part: library for part, library in (("JSON", "jansson"), ("ZSTD", "zstd")) if has(library)}
    run(given.cc, "-shared", "-fPIC", "-std=gnu17", *STRICT, *(f"-DIVM_WITH_{part}" for part in parts), f"{source}/ivm.c", "-o",
        f"{work}/libone.so", "-lm", "-pthread", *(f"-l{library}" for library in parts.values()))
    if "JSON" in parts:
        print(run(sys.executable, f"{HERE}/ctypes_load.py", f"{work}/libone.so"), end="")
    exported = set(re.findall(r" [TBDR] (\w+)", run("nm", "-D", "--defined-only", f"{work}/libone.so")))
    with open(f"{ROOT}/include/package/ivm.map", encoding="utf-8") as file:
        listed = set(re.findall(r"^    (ivm_\w+);", file.read(), re.M))
    need(exported == listed, f"exported or listed, not both: {exported ^ listed}")


def java(given, work):
    home = os.path.dirname(os.path.dirname(os.path.realpath(shutil.which("javac"))))
    library = os.path.realpath(f"{given.build}/libivm.so")
    run(given.cc, "-shared", "-fPIC", f"-I{home}/include", f"-I{home}/include/linux", f"-I{ROOT}/include", f"{FOREIGN}/load.c", library,
        f"-Wl,-rpath,{given.build}", "-o", f"{work}/libload.so")
    run("javac", "-d", work, f"{FOREIGN}/Load.java")
    need_total(run("java", "-cp", work, "Load", library, f"{work}/libload.so"), "a JVM")


def main():
    ways = {way.__name__: way for way in (installed, debian, subdirectory, amalgamation, java)}
    parser = argparse.ArgumentParser()
    parser.add_argument("way", choices=ways)
    for name in ("--build", "--cc", "--cxx", "--generator"):
        parser.add_argument(name, required=True)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        ways[given.way](given, work)


main()
