internal import ArgumentParser
internal import ByteCoding
internal import Commands
internal import MFADomain

extension AdminCommand {
  struct Recoveries: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "recoveries",
      abstract: "Lists open account recoveries by backup code, one per line.",
      discussion: """
        Example:

          mfa-backend admin recoveries
        """)
    @OptionGroup var database: DatabaseOptions
    @OptionGroup var format: ResultFormat

    /// A recovery, for programs.
    private struct Line: Encodable {
      let username, startedAt, readyAt, expiresAt, address: String
    }

    func run() async throws {
      try await database.administer { administration, actor in
        var last: String?
        while true {
          let found = try await administration.recoveries(after: last, atMost: 200, by: actor)
          for (user, recovery) in found {
            let (started, ready) = (recovery.startedAt.wholeSecond, recovery.readyAt.wholeSecond)
            let expires = recovery.expiresAt.wholeSecond
            format.print(
              "\(user.shownName) started=\(started) ready=\(ready) expires=\(expires) from=\(recovery.address)",
              Line(
                username: user.username.text, startedAt: "\(started)", readyAt: "\(ready)", expiresAt: "\(expires)",
                address: "\(recovery.address)"))
          }
          guard let user = found.last?.user, found.count == 200 else { return }
          last = Administration.cursor(after: user)
        }
      }
    }
  }

  struct CancelRecovery: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "cancel-recovery", abstract: "Stops the recovery of an account.",
      discussion: """
        Example:

          mfa-backend admin cancel-recovery ada
        """)
    @OptionGroup var account: Account

    func run() async throws {
      try await account.database.administer { administration, actor in
        do {
          let user = try await administration.cancelRecovery(account.username(administration, actor), by: actor)
          account.print("stopped the recovery of \(user.shownName)", of: user, changed: true)
        } catch MFARefusal.notFound {
          throw Failure(
            .noInput, "no recovery of \(account.shown) is open",
            hint: "mfa-backend admin recoveries lists the open ones")
        }
      }
    }
  }
}
