public import ArgumentParser
internal import ByteCoding
internal import Commands
internal import Foundation
internal import Glibc
public import MFADomain
internal import MFAService
internal import MFAWire

/// The commands that change accounts, run on the machine with the database and the keys.
struct AdminCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "admin",
    abstract: "Lists, locks, unlocks and resets accounts.",
    discussion: """
      The commands work on the database and its keys file, also while a backend runs. An account with a name that an \
      earlier version accepted, and that is refused today, is named by its id: --id in place of the name. admin users \
      --json prints the ids.

      Example:

        mfa-backend admin lock ada -c /etc/mfa/mfa.yaml
      """,
    subcommands: [
      Users.self, Details.self, Lock.self, Unlock.self, EndSessions.self, Reset.self, RemoveDevice.self, Grant.self,
      Revoke.self, Show.self,
      Recoveries.self, CancelRecovery.self, Tokens.self, Tables.self, Rows.self,
    ])

  /// The account that a command works on, and its database.
  struct Account: ParsableArguments {
    @Argument(help: "The username of the account.")
    var name: String?

    @Option(help: "The id of the account, in place of its username.", transform: accountID)
    var id: UUID?

    @OptionGroup var database: DatabaseOptions
    @OptionGroup var format: ResultFormat

    func validate() throws {
      guard (name == nil) != (id == nil) else {
        throw ValidationError(name == nil ? "write the username of the account, or --id" : "write a username or --id")
      }
    }

    private static func accountID(_ text: String) throws(ValidationError) -> UUID {
      guard let id = UUID(text: text) else {
        throw ValidationError("--id is not the id of an account; mfa-backend admin users --json prints the ids")
      }
      return id
    }

    /// The account's name. That of an `id` is as the database has it, also if today's rule refuses it.
    ///
    /// - Throws: `Failure` for a name that today's rule refuses; `.notFound` for an id without an account.
    func username(_ administration: Administration, _ actor: Administration.Actor) async throws -> Username {
      if let id { return try await administration.name(of: id, by: actor) }
      do throws(InvalidValue) {
        return try Username(name ?? "")
      } catch {
        throw Failure(
          .problems, "\(error.field) \(error.rule)",
          hint: "an account that an earlier version named so has an id: mfa-backend admin users --json, then --id")
      }
    }

    /// The account as the operator named it.
    var shown: String { name ?? id?.text ?? "" }

    /// Prints what the command did: `text`, or with `--json` whether it changed the account.
    func print(_ text: String, of user: User, changed: Bool) {
      format.print(text, Change(username: user.username.text, changed: changed))
    }
  }

  /// An account in the words of the REST interface, with its id.
  private struct IdentifiedEntry: Encodable {
    private enum Key: String, CodingKey { case id }

    private let id: String
    private let entry: AccountList.Entry

    init(_ account: Administration.Account) {
      (id, entry) = (account.user.id.text, AccountList.Entry(account))
    }

    func encode(to encoder: any Encoder) throws {
      try entry.encode(to: encoder)
      var container = encoder.container(keyedBy: Key.self)
      try container.encode(id, forKey: .id)
    }
  }

  /// The result of a command that changes an account, for programs.
  private struct Change: Encodable {
    let username: String
    let changed: Bool
  }

  struct Users: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "users",
      abstract: "Lists accounts, one per line.",
      discussion: """
        A name with other characters than letters, digits and -._@+' is in quotation marks, and a character that a \
        terminal does not show is written as \\u{FE0F}.

        Example:

          mfa-backend admin users --search ada
        """)
    @Option(help: "Only accounts with this text in their name, in any case.") var search: String?
    @Option(help: "Only accounts that are locked, or only admins: locked or admin.") var state: AccountFilter.State?
    @OptionGroup var database: DatabaseOptions
    @OptionGroup var format: ResultFormat

    func run() async throws {
      try await database.administer { administration, actor in
        let filter = AccountFilter(text: search, state: state)
        var last: String?
        repeat {
          let found = try await administration.search(filter, after: last, atMost: 200, by: actor)
          for account in found.accounts { format.print(AdminCommand.line(account), IdentifiedEntry(account)) }
          last = found.next
        } while last != nil
      }
    }
  }

  struct Lock: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "lock",
      abstract: "Locks an account and revokes its sessions.",
      discussion: """
        Example:

          mfa-backend admin lock ada
        """)
    @OptionGroup var account: Account

    func run() async throws {
      try await account.database.administer {
        let user = try await $0.lock(account.username($0, $1), by: $1)
        let isNew = user.lockedAt == nil
        account.print(
          isNew ? "locked \(user.shownName) and ended its sessions" : "\(user.shownName) was locked already",
          of: user, changed: isNew)
      }
    }
  }

  struct Unlock: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "unlock",
      abstract: "Unlocks an account and resets its lockouts.",
      discussion: """
        Example:

          mfa-backend admin unlock ada
        """)
    @OptionGroup var account: Account

    func run() async throws {
      try await account.database.administer {
        let user = try await $0.unlock(account.username($0, $1), by: $1)
        let wasLocked = user.lockedAt != nil
        account.print(
          wasLocked
            ? "unlocked \(user.shownName) and reset its lockouts"
            : "\(user.shownName) was not locked; reset its lockouts",
          of: user, changed: wasLocked)
      }
    }
  }

  struct Reset: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "reset",
      abstract: "Removes the second factor and prints a code to enrol a new device, valid for 30 minutes.",
      discussion: """
        Example:

          mfa-backend admin reset ada
        """)
    @OptionGroup var account: Account

    func run() async throws {
      try await account.database.administer {
        let code = try await $0.resetFactors(account.username($0, $1), by: $1)
        account.format.print(
          code,
          ResetResponse(temporaryCode: code, expiresIn: Int(Administration.codeLifetime.components.seconds)))
      }
    }
  }

  struct RemoveDevice: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "remove-device",
      abstract: "Removes a device of an account.",
      discussion: """
        Example:

          mfa-backend admin remove-device ada --device phone-1
        """)
    @OptionGroup var account: Account
    @Option(help: "The id of the device.") var device: String

    func run() async throws {
      try await account.database.administer {
        let user = try await $0.removeDevice(DeviceID(device), of: account.username($0, $1), by: $1)
        account.print("removed the device \(device) of \(user.shownName)", of: user, changed: true)
      }
    }
  }

  struct Grant: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "grant",
      abstract: "Makes an account an admin of other accounts.",
      discussion: """
        Example:

          mfa-backend admin grant ada
        """)
    @OptionGroup var account: Account

    func run() async throws {
      try await account.database.administer {
        let user = try await $0.setAdmin(true, account.username($0, $1), by: $1)
        account.print(
          user.isAdmin ? "\(user.shownName) was an admin already" : "\(user.shownName) is an admin now",
          of: user, changed: !user.isAdmin)
      }
    }
  }

  struct Revoke: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "revoke",
      abstract: "Removes the admin right from an account.",
      discussion: """
        Example:

          mfa-backend admin revoke ada
        """)
    @OptionGroup var account: Account

    func run() async throws {
      try await account.database.administer {
        let user = try await $0.setAdmin(false, account.username($0, $1), by: $1)
        account.print(
          user.isAdmin ? "\(user.shownName) is no admin any more" : "\(user.shownName) was no admin",
          of: user, changed: user.isAdmin)
      }
    }
  }

  struct Show: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "history",
      abstract: "Prints the history of an account, one entry per line, newest first.",
      discussion: """
        Each line begins with the number of the entry. To continue, give the number of the last line with --before.

        Example:

          mfa-backend admin history ada --last 50 --before 1234
        """)
    @OptionGroup var account: Account
    @Option(help: "The number of entries, 1 to 1000.") var last = 100
    @Option(help: "Only entries with a smaller number.") var before: Int64?

    func validate() throws {
      guard (1...1000).contains(last) else { throw ValidationError("--last \(last): must be from 1 to 1000") }
    }

    func run() async throws {
      try await account.database.administer { administration, actor in
        let entries = try await administration.history(
          of: account.username(administration, actor), before: before, atMost: last, by: actor)
        for entry in entries {
          account.format.print(
            "\(entry.sequence) \(entry.at) \(entry.event) \(entry.detail) \(entry.actor)", History.Entry(entry))
        }
      }
    }
  }

  private static func line(_ account: Administration.Account) -> String {
    let marks =
      (account.user.lockedAt == nil ? "" : " locked") + (account.user.isAdmin ? " admin" : "")
      + (account.secondFactorSince == nil ? "" : " mfa")
    return "\(account.user.shownName) devices=\(account.devices.count)\(marks)"
  }
}

extension AccountFilter.State: ExpressibleByArgument {}

extension User {
  /// The name for a line of output.
  var shownName: String { PrintedName.quoting(username.text) }
}

extension DatabaseOptions {
  /// Calls `body` with the administration of this database. The actor is the user id that runs the command.
  func administer(
    _ body: (Administration, Administration.Actor) async throws -> Void
  ) async throws {
    let (store, keys) = try open()
    let vault = try await Vault.open(in: store, with: keys, entropy: .system)
    if let began = vault.historyBegan {
      Console.note("note: the history had no key; a key was created, which covers entries from \(began) on")
    }
    let tokens = try await AccessTokens(vault: vault, issuer: "mfa-backend", audience: "mfa-backend")
    let context = DomainContext(store: store, vault: vault, outbox: Silence(), tokens: tokens)
    let name = OperatorName.name(of: getuid(), in: ProcessInfo.processInfo.environment)
    try await body(Administration(context), .command(name: name))
  }
}

/// An outbox that sends nothing: the admin commands send no messages.
private struct Silence: Outbox {
  func send(_ message: OutgoingMessage) {}
}
