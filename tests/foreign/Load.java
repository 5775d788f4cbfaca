// Load LIBRARY BRIDGE: loads the library into a JVM and, by a bridge of JNI, runs total.c in it.
final class Load {
    static native int total();

    public static void main(String[] paths) {
        System.load(paths[0]);
        System.load(paths[1]);
        System.exit(total());
    }
}
