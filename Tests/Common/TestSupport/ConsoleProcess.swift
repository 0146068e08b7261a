import Foundation

/// The process of a console, of any program, and a browser that uses it.
public struct ConsoleProcess: Sendable {
  public let process: ChildProcess
  public let port: UInt16
  public let token: String
  /// The printed address.
  public let address: String

  /// The console or its answer is not as it must be.
  public struct Unexpected: Error, Sendable {
    let text: String
  }

  /// Starts `PROGRAM console --print` and waits for its address.
  public init(_ program: String, _ arguments: [String] = [], environment: [String: String?] = [:]) async throws {
    process = try ChildProcess(
      try Places.product(program), ["console", "--print"] + arguments, environment: environment)
    address = try await process.output.first("the address of the console") { $0.hasPrefix("http://") }
    let parts = address.components(separatedBy: "/#")
    guard parts.count == 2, let port = parts[0].components(separatedBy: ":").last.flatMap({ UInt16($0) }) else {
      throw Unexpected(text: address)
    }
    (token, self.port) = (parts[1], port)
  }

  public var host: String { "127.0.0.1:\(port)" }

  /// Returns the fields of a request by a page of the console.
  private func head(_ method: String, _ target: String, _ fields: [(String, String?)]) -> String {
    let lines = fields.compactMap { name, value in value.map { "\(name): \($0)\r\n" } }
    return "\(method) \(target) HTTP/1.1\r\n\(lines.joined())Connection: close\r\n\r\n"
  }

  public func get(_ target: String, cookie: String? = nil, host: String? = nil) async throws -> ConsoleAnswer {
    try await send(head("GET", target, [("Host", host ?? self.host), ("Cookie", cookie)]))
  }

  /// - Parameter origin: The origin of the page; empty for none.
  public func post(
    _ target: String, _ body: String, cookie: String? = nil, origin: String? = nil
  ) async throws -> ConsoleAnswer {
    let origin = origin ?? "http://\(host)"
    return try await send(
      head(
        "POST", target,
        [
          ("Host", host), ("Origin", origin.isEmpty ? nil : origin), ("Cookie", cookie),
          ("Content-Type", "application/x-www-form-urlencoded"), ("Content-Length", "\(body.utf8.count)"),
        ]) + body)
  }

  /// Sends `request` on a connection of its own and returns the answer.
  public func send(_ request: String) async throws -> ConsoleAnswer {
    let port = port
    return try await Aside {
      let connection = try RawConnection(port: port)
      connection.send(request)
      return try ConsoleAnswer(connection.wholeAnswer())
    }.value
  }

  /// Signs in and returns the cookie of the browser.
  public func signIn() async throws -> String {
    let answer = try await post("/session", token)
    guard answer.status == 200, let cookie = answer.headers.first("Set-Cookie") else {
      throw Unexpected(text: answer.text)
    }
    return String(cookie.prefix { $0 != ";" })
  }

  /// Does an act by the form of a page.
  public func act(_ name: String, _ values: String, on page: String, cookie: String) async throws -> ConsoleAnswer {
    let token = try await formToken(on: page, cookie: cookie)
    return try await post("/act/\(name)", "\(values)&token=\(token)&back=\(page)", cookie: cookie)
  }

  /// Returns the token in the forms of a page.
  public func formToken(on page: String = "/", cookie: String) async throws -> String {
    let text = try await get(page, cookie: cookie).text
    guard let token = text.firstMatch(of: /name="token" value="([^"]+)"/)?.output.1 else {
      throw Unexpected(text: text)
    }
    return String(token)
  }

  /// Returns the statuses of pages while other connections send 500 requests each and read no answer.
  public func statusesNextToSilentReaders(of page: String, cookie: String) async throws -> [Int] {
    let requests = String(
      repeating: "GET \(page) HTTP/1.1\r\nHost: \(host)\r\nCookie: \(cookie)\r\n\r\n", count: 500)
    let readers = try (0..<5).map { _ in try RawConnection(port: port) }
    for reader in readers {
      guard reader.send(requests) > 0 else { throw Unexpected(text: "nothing was sent") }
    }
    var statuses: [Int] = []
    for _ in 0..<20 { statuses.append(try await get(page, cookie: cookie).status) }
    withExtendedLifetime(readers) {}
    return statuses
  }

  /// What a console does with more connections than it has places for.
  public struct Crowd: Sendable, Hashable {
    /// The status of a page while 28 connections send nothing.
    public var next = 0
    /// Whether a page was refused with 38 of them.
    public var isRefused = false
    /// The status of a page after they have ended.
    public var after: Int?

    public init(next: Int = 0, isRefused: Bool = false, after: Int? = nil) {
      (self.next, self.isRefused, self.after) = (next, isRefused, after)
    }
  }

  /// Opens connections that send nothing, until the limit of 32 closes further ones at once.
  public func crowd(_ page: String, cookie: String) async throws -> Crowd {
    var crowd = Crowd()
    var silent = try (0..<28).map { _ in try RawConnection(port: port) }
    crowd.next = try await get(page, cookie: cookie).status
    for _ in 0..<10 { silent.append(try RawConnection(port: port)) }
    do { _ = try await get(page, cookie: cookie) } catch { crowd.isRefused = true }
    silent.removeAll()
    // The place is free for others as soon as the kernel has reported the ends.
    for _ in 0..<100 where crowd.after != 200 { crowd.after = try? await get(page, cookie: cookie).status }
    return crowd
  }

  /// What connections of another user of the machine get.
  public struct ForeignUse: Sendable, Hashable {
    /// The statuses of the overview for a browser without a session, after sign-ins whose answer was not awaited.
    public var blind: [Int] = []
    /// The first answers to the operator, to the other user from the operator's port, and to the operator again.
    public var turns: [[String]] = []
    /// The statuses for the operator while the other user has 100 connections.
    public var crowded: [Int] = []
  }

  /// Tries the console as `user`, which only root can, and signs in meanwhile.
  public func use(by user: UInt32, page: String) async throws -> ForeignUse {
    var use = ForeignUse()
    for _ in 0..<5 {
      let blind = try RawConnection(port: port, user: user)
      blind.send(
        "POST /session HTTP/1.1\r\nHost: \(host)\r\nOrigin: http://\(host)\r\n"
          + "Content-Length: \(token.utf8.count)\r\n\r\n\(token)")
      blind.close()
      use.blind.append(try await get("/").status)
    }
    let cookie = try await signIn()
    let request = "GET \(page) HTTP/1.1\r\nHost: \(host)\r\nCookie: \(cookie)\r\n\r\n"
    for first in [nil, user] {
      var port: UInt16 = 0
      use.turns.append(
        try [first, user, nil].map { user in
          let connection = try RawConnection(port: self.port, from: port, user: user)
          port = connection.ownPort
          connection.send(request)
          defer { connection.reset() }
          return String(connection.firstAnswer().prefix(13))
        })
    }
    let many = try (0..<100).map { _ in try RawConnection(port: port, user: user) }
    for _ in 0..<10 { use.crowded.append(try await get(page, cookie: cookie).status) }
    withExtendedLifetime(many) {}
    return use
  }
}

/// An answer of a console.
public struct ConsoleAnswer: Sendable {
  /// The header fields.
  public struct Fields: Sendable {
    let fields: [(name: String, value: String)]

    public func first(_ name: String) -> String? { all(name).first }

    public func all(_ name: String) -> [String] {
      fields.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
    }
  }

  public let status: Int
  public let headers: Fields
  public let body: [UInt8]

  public var text: String { String(decoding: body, as: UTF8.self) }

  /// - Throws: `ConsoleProcess.Unexpected` for no complete answer, as of a connection that was closed.
  init(_ bytes: [UInt8]) throws {
    let end = bytes.indices.first { bytes[$0...].starts(with: Array("\r\n\r\n".utf8)) }
    let lines = String(decoding: bytes[..<(end ?? bytes.startIndex)], as: UTF8.self).components(separatedBy: "\r\n")
    let words = lines[0].split(separator: " ")
    guard let end, words.count > 1, let status = Int(words[1]) else {
      throw ConsoleProcess.Unexpected(text: "no answer: \(bytes.count) bytes")
    }
    self.status = status
    headers = Fields(
      fields: lines.dropFirst().compactMap { line in
        let halves = line.split(separator: ":", maxSplits: 1)
        return halves.count == 2 ? (String(halves[0]), halves[1].trimmingCharacters(in: .whitespaces)) : nil
      })
    body = Array(bytes[(end + 4)...])
    guard headers.first("Content-Length").flatMap({ Int($0) }) == body.count else {
      throw ConsoleProcess.Unexpected(text: "the body is cut off")
    }
  }
}
