internal import Glibc

/// Standard input, output and error of the process.
public enum StandardDescriptors {
  /// Opens a substitute for each standard descriptor that the process inherited closed. Otherwise a file or socket
  /// would get its number, and with it the output that is meant for a terminal. Reading and writing them fails as
  /// before.
  ///
  /// Call it before anything is opened.
  public static func occupy() {
    for (descriptor, mode) in [(STDIN_FILENO, O_WRONLY), (STDOUT_FILENO, O_RDONLY), (STDERR_FILENO, O_RDONLY)]
    where fcntl(descriptor, F_GETFD) < 0 {
      // The lowest free number is this one, because all lower ones are open.
      _ = open("/dev/null", mode)
    }
  }
}
