internal import ArgumentParser
internal import ByteCoding
internal import Commands
internal import MFADomain
internal import MFAService

extension AdminCommand {
  struct Details: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "show",
      abstract: "Shows an account: devices, sessions, factors, trusted devices, locks and an open recovery.",
      discussion: """
        No line has a secret, a phone number or an address of e-mail.

        Example:

          mfa-backend admin show ada
        """)
    @OptionGroup var account: Account

    func run() async throws {
      try await account.database.administer { administration, actor in
        let details = try await administration.details(of: .name(account.username(administration, actor)), by: actor)
        let shown = AccountDescription(details)
        account.format.print(shown.text, shown)
      }
    }
  }

  struct EndSessions: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "end-sessions",
      abstract: "Ends all sessions of an account. Its devices can sign in again.",
      discussion: """
        Example:

          mfa-backend admin end-sessions ada
        """)
    @OptionGroup var account: Account

    func run() async throws {
      try await account.database.administer {
        let (user, count) = try await $0.endSessions(of: account.username($0, $1), by: $1)
        account.print(
          count == 0
            ? "\(user.shownName) had no sessions"
            : "ended \(count) \(count == 1 ? "session" : "sessions") of \(user.shownName)",
          of: user, changed: count > 0)
      }
    }
  }
}

extension AccountDescription {
  /// The account for people, one line for each thing that belongs to it.
  var text: String {
    ([heading] + lines).joined(separator: "\n")
  }

  private var heading: String {
    let state = [account.lockedAt.map { "locked since \($0)" }, account.isAdmin ? "admin" : nil].compactMap(\.self)
    return "\(PrintedName.quoting(account.username)) created \(account.createdAt)"
      + state.map { ", \($0)" }.joined()
  }

  private var lines: [String] {
    devices.map {
      "device \($0.id) \(PrintedName.quoting($0.model)) \($0.method)\($0.isAttested ? "" : " unattested") "
        + "enrolled \($0.enrolledAt)\($0.lastUsedAt.map { " used \($0)" } ?? "")"
    }
      + factors
      + sessions.map {
        "session \($0.id) \($0.scope) \($0.methods.joined(separator: " ")) since \($0.createdAt) until \($0.expiresAt)"
      }
      + trustedDevices.map {
        "trusted \($0.id) \(PrintedName.quoting($0.name)) until \($0.expiresAt)"
      }
      + lockouts.map { lockout in
        let end =
          lockout.isLocked ? lockout.until.map { ", locked until \($0)" } ?? ", locked until unlocked" : ""
        return "attempts \(lockout.purpose) \(lockout.failures) failed\(end)"
      }
      + (recovery.map { ["recovery \($0.state) since \($0.startedAt) ready \($0.readyAt) from \($0.address)"] } ?? [])
  }

  private var factors: [String] {
    (authenticatorSince.map { ["authenticator since \($0)"] } ?? [])
      + tokens.map { token in
        token.name.map { "app \(token.serial) \(PrintedName.quoting($0))" }
          ?? "token \(token.serial) \(PrintedName.quoting(token.maker)) \(token.kind)"
      }
      + securityKeys.map { "security-key \($0.id) \(PrintedName.quoting($0.name)) since \($0.createdAt)" }
      + (hasEmail ? ["email confirmed"] : []) + (account.backupCodes > 0 ? ["backup-codes \(account.backupCodes)"] : [])
      + identities.map { "provider \(PrintedName.quoting($0.issuer)) since \($0.connectedAt)" }
  }
}
