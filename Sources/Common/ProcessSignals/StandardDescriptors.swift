internal import Glibc

/// Standard input, output and error of the process.
public enum StandardDescriptors {
  /// Puts something in the place of those that whoever started the process has closed, so that no file or socket of the
  /// process gets their numbers and with them what is meant for a terminal. Reading and writing them fails as before.
  ///
  /// To be called before anything is opened.
  public static func occupy() {
    for (descriptor, mode) in [(STDIN_FILENO, O_WRONLY), (STDOUT_FILENO, O_RDONLY), (STDERR_FILENO, O_RDONLY)]
    where fcntl(descriptor, F_GETFD) < 0 {
      // The lowest free number is this one: those below are taken by now.
      _ = open("/dev/null", mode)
    }
  }
}
