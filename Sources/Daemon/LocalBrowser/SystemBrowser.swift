internal import Commands
internal import FoundationEssentials
internal import Glibc

/// The browser of the desktop.
public enum SystemBrowser {
  /// Starts it with `address`.
  ///
  /// - Returns: Whether there is a desktop and a program that opens addresses.
  public static func open(_ address: String) -> Bool {
    let environment = ProcessInfo.processInfo.environment
    let named = environment["BROWSER"].flatMap { $0.isEmpty ? nil : $0 }
    let hasDesktop = ["DISPLAY", "WAYLAND_DISPLAY"].contains { environment[$0]?.isEmpty == false }
    guard let program = named ?? (hasDesktop ? "xdg-open" : nil) else { return false }
    guard let id = StartedProgram.start([program, address], reading: nil, writing: nil) else { return false }
    // A browser that cannot reach the desktop exits at once.
    usleep(100_000)
    var status: Int32 = 0
    return waitpid(id, &status, WNOHANG) != id || status == 0
  }
}
