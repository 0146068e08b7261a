internal import ArgumentParser
internal import ByteCoding
internal import Commands
internal import MFAWire

struct FactorAppsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "apps",
    abstract: "List the authenticators of the account: apps, and tokens that operators have assigned.",
    discussion: """
      One line for each: id, kind, name, beginning and last use, separated by tabs. `first` is the app that was set up
      together with the backup codes. Example:
        attest factor apps wss://localhost:6200/ --authority DIR
      """)

  @OptionGroup var options: AppOptions

  func run() async throws {
    let app = try await MobileApp(options)
    app.print(try await app.call(MFAOperations.authenticators, EmptyRequest())) { list in
      MobileApp.table(list.authenticators.map { [$0.id, $0.kind, $0.name, $0.createdAt, $0.lastUsedAt ?? "never"] })
    }
  }
}

struct FactorAddAppCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "add-app",
    abstract: "Make a secret for a further authenticator app, such as that of a new phone.",
    discussion: """
      Prints the id, the secret and its otpauth URI, which the server never shows again; on a terminal the QR code, too.
      It is in force after `attest factor confirm-app`, within ten minutes. Example:
        attest factor add-app wss://localhost:6200/ --name tablet --authority DIR
        attest factor add-app wss://localhost:6200/ --authority DIR --json
      """)

  @OptionGroup var options: AppOptions

  @Option(help: "The name of the app in the list.")
  var name = "Authenticator app"

  func run() async throws {
    let app = try await MobileApp(options)
    let offer = try await app.call(MFAOperations.offerAuthenticator, AppRequest(name: name))
    app.print(offer) { offer in
      "id: \(TerminalText.printable(offer.id))\n"
        + MobileApp.authenticatorText(secret: offer.secret, uri: offer.qrCodeUrl)
    }
    if !options.global.json {
      StandardError.write("hint: `attest factor confirm-app URL ID CODE` with a code of the app\n")
    }
  }
}

struct FactorConfirmAppCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "confirm-app",
    abstract: "Give a code of the further authenticator app; from then on its codes are a second factor, too.",
    discussion: """
      Example:
        attest factor confirm-app wss://localhost:6200/ ID 123456 --authority DIR
      """)

  @OptionGroup var options: AppOptions

  @Argument(help: "The id, as `attest factor add-app` printed it.")
  var id: String

  @Argument(help: "The code that the app shows.")
  var code: String

  func run() async throws {
    let app = try await MobileApp(options)
    app.print(
      try await app.call(MFAOperations.confirmOfferedAuthenticator, AppCodeRequest(id: id, code: code))
    ) { entry in
      MobileApp.table([[entry.id, entry.name]])
    }
  }
}

struct FactorRenameAppCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rename-app",
    abstract: "Give an added authenticator app another name.",
    discussion: """
      Example:
        attest factor rename-app wss://localhost:6200/ ID tablet --authority DIR
      """)

  @OptionGroup var options: AppOptions

  @Argument(help: "The id of the app, as `attest factor apps` shows it.")
  var id: String

  @Argument(help: "The new name.")
  var name: String

  func run() async throws {
    let app = try await MobileApp(options)
    app.print(
      try await app.call(MFAOperations.renameAuthenticator, RenameAuthenticatorRequest(id: id, name: name))
    ) { entry in
      MobileApp.table([[entry.id, entry.name]])
    }
  }
}

struct FactorRemoveAppCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "remove-app",
    abstract: "Remove an authenticator app from the account, while another one remains.",
    discussion: """
      `attest factor off` removes the last one. Example:
        attest factor remove-app wss://localhost:6200/ first --authority DIR
      """)

  @OptionGroup var options: AppOptions

  @Argument(help: "The id of the app, as `attest factor apps` shows it, or first.")
  var id: String

  func run() async throws {
    let app = try await MobileApp(options)
    app.report(try await app.call(MFAOperations.removeAuthenticator, AuthenticatorReference(id: id)))
  }
}
