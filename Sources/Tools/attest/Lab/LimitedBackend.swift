internal import Locking
internal import MFAClient
internal import MFAWire

/// A backend that notes for how long its limits of attempts ask to wait.
struct LimitedBackend: MFABackend {
  private let backend: any MFABackend
  private let wait = LockedValue<Duration?>(nil)

  init(_ backend: any MFABackend) { self.backend = backend }

  /// The longest wait that a refusal asked for; `nil` if no limit was reached.
  var longestWait: Duration? { wait.withLock { $0 } }

  func call<Request, Response>(
    _ operation: WireOperation<Request, Response>, _ request: Request, token: String?
  ) async throws(NetworkError) -> Response {
    do throws(NetworkError) {
      return try await backend.call(operation, request, token: token)
    } catch {
      if let asked = Self.wait(for: error) { wait.withLock { $0 = max($0 ?? .zero, asked) } }
      throw error
    }
  }

  /// The wait that a refusal asks for; `nil` if it is not that of a limit.
  static func wait(for error: NetworkError) -> Duration? {
    guard case .refused(let refusal) = error, refusal.code == "rate_limited" else { return nil }
    return refusal.retryAfter ?? .zero
  }
}

/// What a run of the lab does when it reaches limits of attempts, which a run a moment ago may have used up.
enum LabPatience {
  /// The longest wait for one scenario.
  static let longest = Duration.seconds(65)

  /// The pause before a scenario that reached a limit is played again; `nil` if it is not.
  static func pause(after wait: Duration?, attempt: Int) -> Duration? {
    guard let wait, attempt == 1, wait <= longest else { return nil }
    return max(wait, .seconds(1))
  }

  /// What to do about limits that made scenarios fail.
  static func hint(for wait: Duration) -> String {
    let seconds = max(1, wait.components.seconds + (wait.components.attoseconds > 0 ? 1 : 0))
    return "the server limits attempts of one address: run it again in \(seconds) s, "
      + "or raise limits.per_ip.code_requests of the backend"
  }
}
