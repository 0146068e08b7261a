internal import ArgumentParser
internal import AttestClient

struct RegisterCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "register",
    abstract: "Register the device's key with a gate, unless one is registered.",
    discussion: """
      A device goes by what it remembers and asks the gate nothing. Of a key that was removed there `attest connect` \
      hears; or `attest device rm NAME` makes place for a new device.

      Example:
        attest register wss://localhost:6200/ --authority DIR
      """)

  @OptionGroup var options: GlobalOptions

  @Argument(help: "The gate, like wss://localhost:6200/.")
  var url: String

  func run() async throws {
    let work = try await DeviceSession(options, address: GateURL(url), engine: DeviceSession.makeEngine())
    let keyID: String
    do throws(AttestError) { keyID = try await work.session.registerIfNeeded() } catch { throw Failure(error) }
    work.lock.release()
    if options.json {
      JSONOutput.print(["device": work.device.name, "gate": work.address.gateName, "keyId": keyID])
    } else {
      StandardOutput.write("\(work.device.name)  \(work.address.gateName)  \(keyID)\n")
    }
  }
}

struct HeadersCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "headers",
    abstract: "Print the three headers that open one connection, within the next minute.",
    discussion: """
      Exactly three lines `Name: value`, for other clients. The device is registered first if need be. \
      A gate that no longer knows its key answers 401 key_refused: see `attest register --help`.

      Example:
        attest headers wss://localhost:6200/ --authority DIR > headers
        curl --cacert DIR/tls-ca.pem -H @headers -H 'Upgrade: websocket' -H 'Connection: Upgrade' \\
          -H 'Sec-WebSocket-Version: 13' -H 'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==' https://localhost:6200/
      """)

  @OptionGroup var options: GlobalOptions

  @Argument(help: "The gate, like wss://localhost:6200/.")
  var url: String

  func run() async throws {
    let work = try await DeviceSession(options, address: GateURL(url), engine: DeviceSession.makeEngine())
    let headers: AssertionHeaders
    do throws(AttestError) {
      try await work.session.registerIfNeeded()
      headers = try await work.session.assertionHeaders()
    } catch {
      throw Failure(error)
    }
    work.lock.release()
    if options.json {
      JSONOutput.print(Dictionary(uniqueKeysWithValues: headers.fields.map { ($0.name, $0.value) }))
    } else {
      StandardOutput.write(headers.fields.map { "\($0.name): \($0.value)\n" }.joined())
    }
  }
}
