internal import ByteCoding
internal import Commands
internal import Foundation
internal import OIDCClient

/// Keeps the token in the files of a command valid while the command runs.
struct TokenKeeper {
  /// How often the store is read: a token that another process has renewed, or this one must renew, is in the files by
  /// then.
  static let interval = Duration.seconds(2)
  /// The pause after a renewal that failed for a passing reason.
  static let pause = Duration.seconds(30)

  let session: AccountSession
  let store: any TokenStore
  let account: Account
  let files: TokenFiles

  /// Renews until the task is cancelled. `first` is the account whose token is in the files.
  ///
  /// A renewal whose outcome is not known, or that was refused, is not repeated: a provider with reuse detection would
  /// end the session. Then only another process, such as `bearer login`, brings the next token, and standard error says
  /// so once.
  func run(_ first: StoredAccount) async {
    var shown = first
    // What the store had when only another process could go on.
    var stuck: StoredAccount?
    var told = ""
    var pause = Self.interval
    while (try? await Task.sleep(for: pause)) != nil {
      pause = Self.interval
      if let known = stuck, stored() == known {
        if told != Self.uncertain, case .sent = known.refreshState, !isRenewing() {
          tell(
            "\(Self.uncertain): \(account.name): the answer to a renewal was lost, and the command gets no further token "
              + "until another process brings one: `bearer login \(account.words)`")
          told = Self.uncertain
        }
        expire(shown)
        continue
      }
      stuck = nil
      do throws(SessionError) {
        let tokens = try await session.tokens()
        if tokens.tokens.accessToken != shown.tokens.accessToken {
          if show(tokens) { shown = tokens }
          told = ""
        }
        if let known = stored(), case .sent = known.refreshState { stuck = known }
      } catch {
        if told != error.code { tell(Failure(error, at: account).message) }
        told = error.code
        if error.needsAnotherProcess { stuck = stored() }
        pause = Self.pause
        expire(shown)
      }
    }
  }

  private func stored() -> StoredAccount? { (try? store.account(session.account)) ?? nil }

  /// Puts the token into the files.
  private func show(_ tokens: StoredAccount) -> Bool {
    do throws(Failure) {
      guard !tokens.isBound else { throw .bound(account) }
      try files.write(tokens.tokens.accessToken)
      return true
    } catch {
      tell(error.message)
      return false
    }
  }

  private func expire(_ tokens: StoredAccount) {
    if tokens.expiresAt <= Date() { files.clear() }
  }

  /// Whether a process has the lock of the account: what the store calls sent may then be answered.
  private func isRenewing() -> Bool {
    guard let lock = try? store.lock(session.account) else { return true }
    lock.release()
    return false
  }

  private func tell(_ message: String) {
    StandardError.write(TerminalText.printable("warning: \(message)") + "\n")
  }

  private static let uncertain = "refresh_uncertain"
}

extension SessionError {
  /// Whether this process cannot go on by itself.
  fileprivate var needsAnotherProcess: Bool {
    switch self {
    case .notSignedIn, .signInNeeded, .uncertain, .otherClient: true
    case .postponed, .provider, .store, .busy: false
    }
  }
}
