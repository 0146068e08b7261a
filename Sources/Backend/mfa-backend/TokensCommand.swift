internal import ArgumentParser
internal import ByteCoding
internal import Commands
internal import Foundation
internal import MFADomain

extension AdminCommand {
  /// The commands on imported authenticators: hardware tokens, and secrets of other servers.
  struct Tokens: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "tokens",
      abstract: "Imports, assigns and resynchronises hardware tokens and secrets of other servers.",
      discussion: """
        The codes of a token are a second factor of the account that it is assigned to, like those of its \
        authenticator app.

        Example:

          mfa-backend admin tokens import tokens.xml --passphrase-file passphrase
          mfa-backend admin tokens assign 1234567 ada
        """,
      subcommands: [Import.self, List.self, Assign.self, Unassign.self, Remove.self, Resync.self])
  }
}

extension AdminCommand.Tokens {
  /// The kinds of files that are imported.
  enum Format: String, CaseIterable, ExpressibleByArgument {
    case pskc, csv, json
  }

  /// How a table has its secrets.
  enum SecretForm: String, CaseIterable, ExpressibleByArgument {
    case base32, hex, base64

    var encoding: SecretTable.Encoding {
      switch self {
      case .base32: .base32
      case .hex: .hex
      case .base64: .base64
      }
    }
  }

  struct Import: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "import",
      abstract: "Imports all tokens of a file, or none.",
      discussion: """
        The file is a key container of hardware tokens (PSKC, RFC 6030), or a table of another server. A table has the \
        columns secret, serial, user, type, algorithm, digits, period, counter and manufacturer, of which secret and \
        one of serial and user are required. A CSV file begins with the names of its columns; a JSON file is a list of \
        objects.

        A token with a user is assigned to the account of this name, which must be there. --dry-run checks everything \
        and changes nothing.

        Examples:

          mfa-backend admin tokens import tokens.xml --key-file transport.key
          mfa-backend admin tokens import table.csv --format csv --dry-run
        """)
    @Argument(help: "The file; it is bounded to 16 MiB and 10000 tokens.") var file: String
    @Option(help: "The kind of the file: pskc, csv or json.") var format = Format.pskc
    @Option(help: "How a table has its secrets: base32, hex or base64 (default: base32).") var secrets: SecretForm?
    @Option(help: "File with the shared key of an encrypted container, in hexadecimal digits.") var keyFile: String?
    @Option(help: "File with the passphrase of an encrypted container.") var passphraseFile: String?
    @Flag(help: "Check the file and the accounts, and change nothing.") var dryRun = false
    @OptionGroup var database: DatabaseOptions
    @OptionGroup var output: ResultFormat

    /// The result, for programs.
    private struct Result: Encodable {
      let tokens, assigned: Int
      let imported: Bool
    }

    func validate() throws {
      guard keyFile == nil || passphraseFile == nil else {
        throw ValidationError("use either --key-file or --passphrase-file, not both")
      }
      guard format == .pskc || (keyFile == nil && passphraseFile == nil) else {
        throw ValidationError("--key-file and --passphrase-file are for --format pskc")
      }
      guard secrets == nil || format != .pskc else {
        throw ValidationError("--secrets is for --format csv and --format json")
      }
    }

    func run() async throws {
      let tokens = try read()
      try await database.administer { administration, actor in
        do {
          let result = try await administration.importTokens(
            tokens, from: format.rawValue, changes: !dryRun, by: actor)
          let what = "\(result.tokens) \(result.tokens == 1 ? "token" : "tokens"), \(result.assigned) of them assigned"
          output.print(
            dryRun ? "would import \(what)" : "imported \(what)",
            Result(tokens: result.tokens, assigned: result.assigned, imported: !dryRun))
        } catch let faults as Administration.ImportFaults {
          throw Self.failure(faults.reasons, faults.count, file)
        }
      }
    }

    private func read() throws -> [ImportedToken] {
      let largest = format == .pskc ? PSKCFile.largest : SecretTable.largest
      let bytes = Array(try InputFile.readSecret(file, "the file of tokens", limit: largest))
      let encoding = (secrets ?? .base32).encoding
      do throws(ImportError) {
        switch format {
        case .csv: return try SecretTable.read(csv: bytes, encoding: encoding)
        case .json: return try SecretTable.read(json: bytes, encoding: encoding)
        case .pskc: return try PSKCFile.read(bytes, key: try key())
        }
      } catch {
        switch error {
        case .file(let reason): throw Failure(.badData, "\(file): \(reason)", hint: Self.nothing)
        case .tokens(let reasons, let count): throw Self.failure(reasons, count, file)
        case .key(let reason):
          throw Failure(
            .badData, "\(file): \(reason)", hint: "give the sender's key by --key-file or --passphrase-file")
        }
      }
    }

    private static let nothing = "nothing was imported"

    private static func failure(_ reasons: [String], _ count: Int, _ file: String) -> Failure {
      let more = count > reasons.count ? [Message.error("\(file): \(count - reasons.count) more faults")] : []
      return Failure(
        .badData, reasons.map { .error("\(file): \($0)") } + more + [.hint(Self.nothing)])
    }

    private func key() throws(ImportError) -> PSKCFile.Key? {
      do {
        if let passphraseFile {
          return .passphrase(try InputFile.secretLine(passphraseFile, "the passphrase file"))
        }
        guard let keyFile else { return nil }
        let line = try InputFile.secretLine(keyFile, "the key file")
        guard let bytes = Hex.decode(line) else { throw ImportError.key("\(keyFile) is not in hexadecimal digits") }
        return .shared(bytes)
      } catch let error as ImportError {
        throw error
      } catch {
        throw .key(Failure(of: error).message)
      }
    }
  }

  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "list",
      abstract: "Lists tokens and the apps that users have added by serial number, one per line, without secrets.",
      discussion: """
        Example:

          mfa-backend admin tokens list
        """)
    @OptionGroup var database: DatabaseOptions
    @OptionGroup var format: ResultFormat

    /// A token, for programs.
    private struct Line: Encodable {
      let serial, type, manufacturer: String
      /// The user's name for an app that the user has added.
      let name: String?
      let user: String?
      let counter, drift: Int64
      let lastUsedAt: String?
    }

    func run() async throws {
      try await database.administer { administration, actor in
        var last: TokenSerial?
        while true {
          let tokens = try await administration.tokens(after: last, atMost: 200, by: actor)
          for entry in tokens {
            let token = entry.token
            let place = token.kind == .hotp ? "counter=\(token.next)" : "drift=\(token.drift)"
            let owner = entry.owner.map { PrintedName.quoting($0.text) } ?? "-"
            let used = token.lastUsedAt.map { "\($0.wholeSecond)" }
            let name = token.name.map { " name=\(PrintedName.quoting($0.text))" } ?? ""
            format.print(
              "\(token.serial.text) \(token.kind.rawValue) user=\(owner) \(place) used=\(used ?? "never")\(name)",
              Line(
                serial: token.serial.text, type: token.kind.rawValue, manufacturer: token.maker,
                name: token.name?.text, user: entry.owner?.text, counter: token.kind == .hotp ? token.next : 0,
                drift: token.drift,
                lastUsedAt: used))
          }
          guard let serial = tokens.last?.token.serial, tokens.count == 200 else { return }
          last = serial
        }
      }
    }
  }

  /// The token that a command works on, and the database.
  struct Token: ParsableArguments {
    @Argument(help: "The serial number of the token.") var serial: String
    @OptionGroup var database: DatabaseOptions
    @OptionGroup var format: ResultFormat

    /// The result of a command that changes a token, for programs.
    private struct Change: Encodable {
      let serial: String
      let user: String?
      let changed: Bool
    }

    func print(_ text: String, of user: User?, changed: Bool) {
      format.print(text, Change(serial: serial, user: user?.username.text, changed: changed))
    }

    /// Calls `body`, and says what a `TokenError` means.
    func administer(
      user: String? = nil, _ body: (Administration, Administration.Actor, TokenSerial) async throws -> Void
    ) async throws {
      let number = try TokenSerial(serial)
      try await database.administer { administration, actor in
        do {
          try await body(administration, actor, number)
        } catch let error as Administration.TokenError {
          throw error.failure(serial: serial, user: user ?? "")
        }
      }
    }
  }

  struct Assign: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "assign", abstract: "Assigns a token to an account, whose second factor its codes are from then on.",
      discussion: """
        Example:

          mfa-backend admin tokens assign 1234567 ada
        """)
    @OptionGroup var token: Token
    @Argument(help: "The username of the account.") var user: String

    func run() async throws {
      try await token.administer(user: user) { administration, actor, serial in
        let owner = try await administration.assignToken(serial, to: Username(user), by: actor)
        token.print("assigned \(serial.text) to \(owner.shownName)", of: owner, changed: true)
      }
    }
  }

  struct Unassign: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "unassign", abstract: "Takes a token from its account. It can be assigned again.",
      discussion: """
        Example:

          mfa-backend admin tokens unassign 1234567
        """)
    @OptionGroup var token: Token

    func run() async throws {
      try await token.administer { administration, actor, serial in
        let owner = try await administration.unassignToken(serial, by: actor)
        token.print(
          owner.map { "took \(serial.text) from \($0.shownName)" } ?? "\(serial.text) was not assigned", of: owner,
          changed: owner != nil)
      }
    }
  }

  struct Remove: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "remove", abstract: "Removes a token, or an app that a user has added, with its secret.",
      discussion: """
        Example:

          mfa-backend admin tokens remove 1234567
        """)
    @OptionGroup var token: Token

    func run() async throws {
      try await token.administer { administration, actor, serial in
        let owner = try await administration.removeToken(serial, by: actor)
        token.print(
          "removed \(serial.text)" + (owner.map { " of \($0.shownName)" } ?? ""), of: owner, changed: true)
      }
    }
  }

  struct Resync: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "resync",
      abstract: "Finds the counter or the clock of a token again by two codes in a row, which are used up.",
      discussion: """
        Looks 1000 codes ahead (HOTP), or 1000 steps to either side (TOTP). With --app, the name is that of an account, \
        and the codes are those of its authenticator app.

        Examples:

          mfa-backend admin tokens resync 1234567 755224 287082
          mfa-backend admin tokens resync --app ada 755224 287082
        """)
    @Flag(help: "The authenticator app of an account, not a token.") var app = false
    @OptionGroup var token: Token
    @Argument(help: "A code.") var first: String
    @Argument(help: "The next code.") var second: String

    /// The result, for programs.
    private struct Result: Encodable {
      let found: Int64
    }

    func run() async throws {
      let codes = (try CodeGuess(first), try CodeGuess(second))
      guard app else {
        return try await token.administer { administration, actor, serial in
          let found = try await administration.resynchroniseToken(serial, by: codes.0, and: codes.1, actor: actor)
          token.format.print("\(serial.text) is in step again, at \(found)", Result(found: found))
        }
      }
      try await token.database.administer { administration, actor in
        do {
          let found = try await administration.resynchroniseAuthenticator(
            of: Username(token.serial), by: codes.0, and: codes.1, actor: actor)
          token.format.print("the authenticator is in step again, at a drift of \(found)", Result(found: found))
        } catch let error as Administration.TokenError {
          throw error.failure(serial: token.serial, user: token.serial, isApp: true)
        }
      }
    }
  }
}

extension Administration.TokenError {
  fileprivate func failure(serial: String, user: String, isApp: Bool = false) -> Failure {
    switch self {
    case .unknownToken:
      Failure(
        .noInput, "no token has the serial number \(serial)", hint: "mfa-backend admin tokens list shows all tokens")
    case .unknownAccount:
      Failure(.noInput, "no account is named \(user)", hint: "mfa-backend admin users lists all accounts")
    case .isAssigned:
      Failure(
        .problems, "the token \(serial) belongs to an account",
        hint: "take it from there first: mfa-backend admin tokens unassign \(serial)")
    case .isOfUser:
      Failure(
        .problems, "\(serial) is an app that its user has added, which no other account gets",
        hint: "mfa-backend admin tokens remove \(serial) removes it with its secret")
    case .tooMany:
      Failure(
        .problems, "the account has \(OATHToken.mostOfAccount) tokens and added apps, which is the limit",
        hint: "unassign or remove one of them first")
    case .sameSecret:
      Failure(
        .problems, "the account \(user) has an authenticator with the same secret",
        hint: "unassign or remove its other token first")
    case .noAuthenticator:
      Failure(.problems, "the account \(user) has no authenticator app", hint: "leave out --app for a token")
    case .codesNotFound:
      Failure(
        .problems, "the codes are not two in a row of this authenticator, or were used before",
        hint: "press the button twice and give both codes in their order; for TOTP wait for the next code")
    case .spentAhead:
      Failure(
        .problems, "a code was used that is more than \(OATHToken.resyncReach) steps ahead of this machine's clock",
        hint: isApp
          ? "check this clock; if it is right: mfa-backend admin reset \(user), and the user sets up an app again"
          : "check this clock; if it is right: mfa-backend admin tokens remove \(serial), and import it again")
    }
  }
}
