internal import FoundationEssentials
internal import Glibc

/// The browser of the desktop.
public enum SystemBrowser {
  /// What has become of a browser.
  public enum Outcome: Sendable, Hashable {
    case started
    /// There is no desktop, or no program that opens addresses.
    case missing
    /// This process runs as `user` by sudo of another user. A browser would run with the rights of `user`, and not be
    /// that of the person.
    case refused(user: UInt32)

    /// A sentence for the person; `nil` if the browser was started.
    public var note: String? {
      switch self {
      case .started: nil
      case .missing: "no browser was started: open the address in one on this machine"
      case .refused(let user):
        "no browser was started, because it would run as uid \(user) by sudo: open the address in your own"
      }
    }
  }

  /// Starts it with `address`, unless it would run as another user than the person.
  public static func open(_ address: String) -> Outcome {
    let environment = ProcessInfo.processInfo.environment
    if isForeign(geteuid(), in: environment) { return .refused(user: geteuid()) }
    let named = environment["BROWSER"].flatMap { $0.isEmpty ? nil : $0 }
    let hasDesktop = ["DISPLAY", "WAYLAND_DISPLAY"].contains { environment[$0]?.isEmpty == false }
    guard let program = named ?? (hasDesktop ? "xdg-open" : nil),
      let id = StartedProgram.start([program, address], reading: nil, writing: nil)
    else { return .missing }
    // A browser that cannot reach the desktop exits at once.
    usleep(100_000)
    var status: Int32 = 0
    return waitpid(id, &status, WNOHANG) != id || status == 0 ? .started : .missing
  }

  /// Whether a process of `user` runs by sudo of another user. A value that names no user counts as another one.
  package static func isForeign(_ user: UInt32, in environment: [String: String]) -> Bool {
    guard let caller = environment["SUDO_UID"], !caller.isEmpty else { return false }
    return UInt32(caller) != user
  }
}
