internal import ArgumentParser
internal import Commands
internal import MFAWire

struct FactorEmailCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "email",
    abstract: "Give the account an address for codes by e-mail.",
    discussion: """
      The server sends a code to the address, which is in use once that code was given: on a terminal the command asks \
      for it, otherwise it is given with a second call. The address replaces an earlier one. Set up the authenticator \
      first: with its first factor an account forgets an earlier address. Example:
        attest factor email wss://localhost:6200/ a@example.com --authority DIR
        attest factor email wss://localhost:6200/ a@example.com 123456 --authority DIR
      """)

  @OptionGroup var options: AppOptions

  @Argument(help: "The address.")
  var address: String

  @Argument(help: "The code that the server has sent to it; without it, the server sends one.")
  var code: String?

  func run() async throws {
    let app = try await MobileApp(options)
    if let code { return try await confirm(code, by: app) }
    let answer = try await app.call(MFAOperations.offerEmail, EmailRequest(email: address))
    if let code = try await app.console.ask("Code:") { return try await confirm(code, by: app) }
    app.report(answer)
    if !options.global.json {
      StandardError.write("hint: `attest factor email URL ADDRESS CODE` with the code that was sent\n")
    }
  }

  private func confirm(_ code: String, by app: MobileApp) async throws {
    app.report(try await app.call(MFAOperations.confirmEmail, EmailCodeRequest(email: address, code: code)))
  }
}
