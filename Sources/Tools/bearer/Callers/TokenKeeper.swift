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

  let session: IssuerSession
  let store: any TokenStore
  let files: TokenFiles
  /// The clock by which a token in the files expires.
  var now: @Sendable () -> Date = { Date() }
  /// Writes a warning.
  var warn: @Sendable (String) -> Void = { StandardError.write(TerminalText.printable("warning: \($0)") + "\n") }

  /// What is known from one round to the next.
  struct Progress {
    /// The account whose token is in the files.
    var shown: StoredAccount
    /// What the store had when only another process could go on.
    var stuck: StoredAccount?
    /// The warnings since that token came, each by its code or text.
    var told: Set<String> = []
    var pause = TokenKeeper.interval

    init(_ shown: StoredAccount) { self.shown = shown }
  }

  /// Renews until the task is cancelled. `first` is the account whose token is in the files.
  func run(_ first: StoredAccount) async {
    var progress = Progress(first)
    while (try? await Task.sleep(for: progress.pause)) != nil { await renew(&progress) }
  }

  /// Brings the files up to date once.
  ///
  /// A renewal whose outcome is not known, or that was refused, is not repeated: a provider with reuse detection would
  /// end the session. Then only another process, such as `bearer login`, brings the next token, and a warning says so
  /// once. A token that cannot be shown is tried again in each round, with one warning; the one in the files goes when it
  /// expires.
  func renew(_ progress: inout Progress) async {
    progress.pause = Self.interval
    if let known = progress.stuck, stored() == known {
      if !progress.told.contains(Self.uncertain), case .sent = known.refreshState, !isRenewing() {
        warn(
          "\(Self.uncertain): \(account.name): the answer to a renewal was lost, and the command gets no further token "
            + "until another process brings one: `bearer login \(account.words)`")
        progress.told.insert(Self.uncertain)
      }
      return expire(progress.shown)
    }
    progress.stuck = nil
    do throws(SessionError) {
      let tokens = try await session.session.tokens()
      show(tokens, &progress)
      if let known = stored(), case .sent = known.refreshState { progress.stuck = known }
    } catch {
      if progress.told.insert(error.code).inserted { warn(session.failure(error).message) }
      if error.needsAnotherProcess { progress.stuck = stored() }
      progress.pause = Self.pause
      expire(progress.shown)
    }
  }

  private var account: Account { session.account }

  private func stored() -> StoredAccount? { (try? store.account(account.name)) ?? nil }

  /// Puts a new token into the files.
  private func show(_ tokens: StoredAccount, _ progress: inout Progress) {
    guard tokens.tokens.accessToken != progress.shown.tokens.accessToken else { return }
    do throws(Failure) {
      guard !tokens.isBound else { throw .bound(account) }
      try files.write(tokens.tokens.accessToken)
      progress.shown = tokens
      progress.told = []
    } catch {
      if progress.told.insert(error.message).inserted { warn(error.message) }
      expire(progress.shown)
    }
  }

  private func expire(_ tokens: StoredAccount) {
    if tokens.expiresAt <= now() { files.clear() }
  }

  /// Whether a process has the lock of the account: what the store calls sent may then be answered.
  private func isRenewing() -> Bool {
    guard let lock = try? store.lock(account.name) else { return true }
    lock.release()
    return false
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
