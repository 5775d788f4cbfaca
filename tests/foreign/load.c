/* The bridge of Load.java. */
#define main total_main
#include "total.c"
#undef main

#include <jni.h>

JNIEXPORT jint JNICALL Java_Load_total(JNIEnv *environment, jclass class)
{
    (void)environment, (void)class;
    return total_main() || fflush(stdout);
}
