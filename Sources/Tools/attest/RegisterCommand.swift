internal import ArgumentParser
internal import AttestClient
internal import Commands
internal import Foundation
internal import Wire

struct RegisterCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "register",
    abstract: "Register the device's key with a gate, unless one is registered.",
    discussion: """
      If the device has a registered key, asks the gate whether it still knows this key. If the gate does not, \
      because the key was removed or the store was lost, the command fails: `attest connect` makes a new key, and \
      `attest device rm NAME` removes the device.

      Example:
        attest register wss://localhost:6200/ --authority DIR
      """)

  @OptionGroup var options: GlobalOptions

  @Argument(help: "The gate, like wss://localhost:6200/.")
  var url: String

  @Flag(help: "Make and register another key, although one is registered.")
  var newKey = false

  func run() async throws {
    let work = try await DeviceSession(
      options, address: GateURL(url), engine: DeviceSession.makeEngine(), replacesKey: newKey)
    let keyID: String
    let isRemembered = work.remembersKey
    do throws(AttestError) {
      keyID = try await work.session.registerIfNeeded()
      if isRemembered { try await work.session.confirmKey(at: work.address, over: work.transport) }
    } catch {
      if case .assertionFailed(let refusal) = error, refusal.code == .keyRefused {
        throw Failure(lostKeyOf: work.device.name, at: url)
      }
      throw work.failure(error)
    }
    work.lock.release()
    if options.json {
      JSONOutput.print(["device": work.device.name, "gate": work.address.gateName, "keyId": keyID])
    } else {
      StandardOutput.write("\(work.device.name)  \(work.address.gateName)  \(keyID)\n")
    }
  }
}

extension Failure {
  /// Of a key that the gate does not know any more.
  fileprivate init(lostKeyOf device: String, at url: String) {
    self.init(
      .refused, "the gate refuses the key that \(device) remembers: it was removed there, or the store was lost",
      hint:
        "`attest connect \(url)` makes a new one, at most once an hour; `attest device rm \(device)` makes room at once"
    )
  }
}

extension AttestSession {
  /// Asks the gate whether it knows the key, as a proxy with forward auth does. Only a refusal contains information
  /// about the key.
  fileprivate func confirmKey(at address: GateURL, over transport: EngineTransport) async throws(AttestError) {
    let headers = try await assertionHeaders()
    guard let url = URL(string: "https://\(address.hostField)/attest/verify") else {
      throw .unusableAddress(address.gateName)
    }
    let fields = headers.fields.map { HTTPField($0.name, $0.value) }
    let answer: HTTPResponse
    do throws(TransportError) {
      answer = try await transport.send(HTTPRequest(url: url, headers: fields))
    } catch {
      throw .transport(error)
    }
    guard answer.status == 401 || answer.status == 403 else { return }
    let refusal = GateRefusal(answer)
    throw refusal.code == .keyRevoked ? .keyRevoked(refusal) : .assertionFailed(refusal)
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
        curl --cacert DIR/tls-ca.pem -H @headers https://localhost:6200/ \\
          -H 'Upgrade: websocket' -H 'Connection: Upgrade' \\
          -H 'Sec-WebSocket-Version: 13' \\
          -H 'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=='

      With --subprotocol the same three values are one word, which browsers and frameworks that cannot set header fields
      offer as a subprotocol. The route's `credentials` must have `subprotocol`.
      """)

  @OptionGroup var options: GlobalOptions

  @Argument(help: "The gate, like wss://localhost:6200/.")
  var url: String

  @Flag(help: "Print a subprotocol that holds the headers.")
  var subprotocol = false

  func run() async throws {
    let work = try await DeviceSession(options, address: GateURL(url), engine: DeviceSession.makeEngine())
    let headers: AssertionHeaders
    do throws(AttestError) {
      try await work.session.registerIfNeeded()
      headers = try await work.session.assertionHeaders()
    } catch {
      throw work.failure(error)
    }
    work.lock.release()
    if subprotocol {
      if options.json {
        JSONOutput.print(["subprotocol": headers.subprotocol])
      } else {
        StandardOutput.write(headers.subprotocol + "\n")
      }
    } else if options.json {
      JSONOutput.print(Dictionary(uniqueKeysWithValues: headers.fields.map { ($0.name, $0.value) }))
    } else {
      StandardOutput.write(headers.lines)
    }
  }
}
