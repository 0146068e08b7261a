import Foundation
import Glibc
import TestSupport
import Testing

/// What another user of the machine can do who reads the arguments of all programs.
@Suite("bearer and other users of the machine", .timeLimit(.minutes(2)))
struct TheftTests {
  /// Calls `body` with the address that a sign-in starts its browser with. The browser does nothing else.
  private func withArgument(
    _ shell: BearerShell, _ body: (ChildProcess, String) async throws -> Void
  ) async throws {
    let pipe = shell.folder + "/argument"
    guard mkfifo(pipe, 0o600) == 0 else { throw CancellationError() }
    try shell.write("#!/bin/sh\necho \"$1\" >\(pipe)\n", to: "idle")
    try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: shell.folder + "/idle")
    let reader = try ChildProcess("/bin/cat", [pipe])
    let login = try shell.start("login --timeout 30 work", environment: ["BROWSER": shell.folder + "/idle"])
    try await body(login, try await reader.output.first("the browser's argument") { !$0.isEmpty })
    _ = try await reader.exit()
  }

  @Test func `the browser's argument has nothing of the request, and what is printed is the same address`() async throws
  {
    try await withHostileProvider { shell, provider in
      let pattern = /http:\/\/127\.0\.0\.1:[0-9]+\/start\/[A-Za-z0-9_-]{22}/
      try await withArgument(shell) { login, address in
        #expect(address.wholeMatch(of: pattern) != nil, "\(address)")
        let (jar, end) = try await shell.authorize(address)
        let page = try await shell.visit(end, jar)
        #expect(page == ["Signed in at work. You can close this window."])
        #expect(try await login.exit() == .code(0))
      }
      let printing = try shell.start("login --no-browser --timeout 30 work")
      let printed = try await printing.errors.first("the address") { $0.hasPrefix("http") }
      #expect(printed.wholeMatch(of: pattern) != nil, "\(printed)")
      printing.kill()
    }
  }

  @Test func `an address that was used before ends the sign-in, and the person sees it`() async throws {
    try await withHostileProvider { shell, provider in
      let login = try shell.start("login --no-browser --timeout 60 work")
      let address = try await login.errors.first("the address") { $0.hasPrefix("http") }
      let (_, stolen) = try await shell.authorize(address)
      let page = try await ChildProcess.run("/usr/bin/curl", ["-s", "-w", "%{http_code}", address])
      #expect(page.output.first?.hasPrefix("This address was used before") == true && page.output.last == "410")
      #expect(try await login.exit() == .code(77))
      let errors = try await login.errors.all()
      #expect(errors.contains { $0.hasPrefix("error: address_used: ") }, "\(errors)")
      #expect(errors.last?.hasPrefix("hint: ") == true, "\(errors)")
      _ = try? await shell.visit(stolen, nil)
      #expect(try await shell.run("token work").fault == "not_signed_in")
    }
  }

  @Test(
    "Another user gets nothing at the port, whatever they know, and the person signs in",
    .enabled(if: getuid() == 0, "to be another user, one must be root"))
  func otherUser() async throws {
    try await withHostileProvider { shell, provider in
      let login = try shell.start("login --no-browser --timeout 60 work")
      let address = try await login.errors.first("the address") { $0.hasPrefix("http") }
      func status(_ url: String) async throws -> String {
        try await ChildProcess.run(
          "/usr/bin/setpriv",
          [
            "--reuid", "12345", "--clear-groups", "/usr/bin/curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", url,
          ]
        ).output.joined()
      }
      #expect(try await status(address) == "403")
      let (jar, end) = try await shell.authorize(address)
      // With state and code, which another person may have read on the screen.
      #expect(try await status(end) == "403")
      #expect(try await shell.visit(end, jar) == ["Signed in at work. You can close this window."])
      #expect(try await login.exit() == .code(0))
      let warnings = try await login.errors.all().filter { $0.hasPrefix("warning: other_user: ") }
      #expect(warnings.count == 2 && warnings.allSatisfy { $0.contains("uid 12345") }, "\(warnings)")
    }
  }

  @Test func `redirects of strangers are answered 400 and waited past, and a browser without cookies is enough`()
    async throws
  {
    try await withHostileProvider { shell, provider in
      let login = try shell.start("login --no-browser --timeout 60 work")
      let address = try await login.errors.first("the address") { $0.hasPrefix("http") }
      let port = try #require(address.split(separator: "/").dropFirst().first)
      for query in ["", "?code=x", "?code=x&state=y", "?error=access_denied&state="] {
        let run = try await ChildProcess.run(
          "/usr/bin/curl", ["-s", "-o", "/dev/null", "-w", "%{http_code}", "http://\(port)/callback\(query)"])
        #expect(run.output == ["400"], "\(query)")
      }
      let (_, end) = try await shell.authorize(address)
      #expect(try await shell.visit(end, nil) == ["Signed in at work. You can close this window."])
      #expect(try await login.exit() == .code(0))
      let warnings = try await login.errors.all().filter { $0.hasPrefix("warning: stray_redirect: ") }
      #expect(warnings.count == 4, "\(warnings)")
    }
  }

  @Test func `two hundred redirects of strangers do not end the sign-in`() async throws {
    try await withHostileProvider { shell, provider in
      let login = try shell.start("login --no-browser --timeout 600 work")
      let address = try await login.errors.first("the address") { $0.hasPrefix("http") }
      let port = try #require(address.split(separator: "/").dropFirst().first)
      let long = String(repeating: "x", count: 4000)
      let run = try await ChildProcess.run(
        "/usr/bin/curl",
        ["-s", "-o", "/dev/null", "-w", "%{http_code}\n", "http://\(port)/callback?code=c&state=[1-200]\(long)"])
      #expect(run.output == Array(repeating: "400", count: 200))
      let (jar, end) = try await shell.authorize(address)
      #expect(try await shell.visit(end, jar) == ["Signed in at work. You can close this window."])
      #expect(try await login.exit() == .code(0))
      // The terminal has some lines about them, and not two hundred.
      #expect(try await login.errors.all().filter { $0.hasPrefix("warning: ") }.count <= 21)
    }
  }

  private static let hasIPv6 =
    ((try? String(contentsOfFile: "/proc/net/if_inet6", encoding: .utf8)) ?? "").contains(" lo\n")

  @Test(
    "A redirect to localhost without a port gets the one that was bound, at both addresses of loopback",
    arguments: hasIPv6 ? ["127.0.0.1", "[::1]"] : ["127.0.0.1"])
  func localhost(host: String) async throws {
    try await withHostileProvider { shell, provider in
      try shell.configure(["work": provider.entry("redirect_uri: http://localhost/callback")])
      let login = try shell.start("login --no-browser --timeout 60 work")
      let address = try await login.errors.first("the address") { $0.hasPrefix("http") }
      let port = try #require(URL(string: address)?.port)
      #expect(address.hasPrefix("http://localhost:\(port)/start/"))
      let route = ["--resolve", "localhost:\(port):\(host)"]
      let jar = shell.folder + "/jar"
      func visit(_ address: String) async throws -> [String] {
        try await ChildProcess.run(
          "/usr/bin/curl",
          ["-s", "--max-time", "20", "-b", jar, "-c", jar, "-w", "%{redirect_url}"] + route + [address]
        ).output
      }
      let authorize = try #require(try await visit(address).last)
      let end = try #require(try await visit(authorize).last)
      // The port is in the address that the provider got.
      #expect(end.hasPrefix("http://localhost:\(port)/callback?"), "\(end)")
      #expect(try await visit(end).first == "Signed in at work. You can close this window.")
      #expect(try await login.exit() == .code(0))
    }
  }

  @Test(
    "A port of localhost that another program has at one of the addresses is not used",
    .enabled(if: hasIPv6, "the machine has no IPv6"))
  func otherAddress() async throws {
    try await withHostileProvider { shell, provider in
      let port = try Places.freePort()
      let other = try ChildProcess(
        "/usr/bin/python3",
        [
          "-c",
          "import socket,sys; s=socket.socket(socket.AF_INET6); s.bind(('::1',\(port))); s.listen();"
            + "print('ready',flush=True); sys.stdin.read()",
        ])
      _ = try await other.output.first("the listener") { $0 == "ready" }
      try shell.configure(["work": provider.entry("redirect_uri: http://localhost:\(port)/callback")])
      let login = try await shell.run("login --no-browser --timeout 5 work")
      #expect(login.code == 71 && login.errors.contains { $0.contains("localhost:\(port)") }, "\(login)")
      other.closeInput()
      _ = try await other.exit()
    }
  }

  @Test func `the time of a sign-in holds for a provider whose answers drip`() async throws {
    try await Places.withTemporaryFolder { folder in
      let server = try DrippingServer()
      defer { server.stop() }
      let shell = BearerShell(folder)
      try shell.configure(["work": ["issuer: \(server.base)", "client_id: app"]])
      for line in ["login --no-browser --timeout 1 work", "login --device --timeout 1 work"] {
        let login = try await shell.run(line)
        #expect(login.code == 76 && login.fault == "answer_lost", "\(login)")
        #expect(login.errors.contains { $0.contains("no complete answer within the time allowed") }, "\(login)")
      }
    }
  }

  @Test func `token gives up a renewal whose answer drips: it was sent once, and its outcome is in doubt`() async throws
  {
    try await Places.withTemporaryFolder { folder in
      let server = try DrippingServer()
      defer { server.stop() }
      let shell = BearerShell(folder)
      try shell.configure([
        "work": [
          "type: oauth2", "token_endpoint: \(server.base)/token", "client_id: app", "password_grant: true", "dpop: off",
        ]
      ])
      server.mend(with: [
        "/token": #"{"access_token":"first","token_type":"Bearer","expires_in":3600,"refresh_token":"r"}"#
      ])
      let login = try await shell.run("login --username user work", input: "x\n")
      #expect(login.code == 0, "\(login)")

      // The head arrives at once, and then one byte after the other.
      server.dripAgain()
      let token = try await shell.run("token work --timeout 1 --rejected -", input: "first\n")
      #expect(token.code == 75 && token.fault == "refresh_uncertain", "\(token)")
      #expect(token.output == [] && server.paths == ["/token", "/token"], "\(token)")
      #expect(try await shell.run("token work --timeout 0").code == 64)
    }
  }

  @Test func `a redirect URI without a port gets the one that was bound`() async throws {
    try await withHostileProvider { shell, provider in
      try shell.configure(["work": provider.entry("redirect_uri: http://127.0.0.1/callback")])
      let login = try await shell.browse()
      #expect(login.code == 0, "\(login)")
    }
  }
}

extension BearerShell {
  /// Visits the short address of a sign-in as a browser with cookies, up to the address of the redirect, which it does not
  /// visit.
  ///
  /// - Returns: The file of the cookies, and the address.
  func authorize(_ address: String) async throws -> (jar: String, end: String) {
    let jar = folder + "/cookies-" + UUID().uuidString
    let place = try await next(after: address, jar)
    return (jar, try await next(after: place, jar))
  }

  /// Visits `address` with the cookies of the file `jar`; `nil` for none.
  func visit(_ address: String, _ jar: String?) async throws -> [String] {
    try await ChildProcess.run(
      "/usr/bin/curl", ["-s", "--max-time", "20"] + (jar.map { ["-b", $0] } ?? []) + [address]
    )
    .output
  }

  /// Where the page at `address` sends the browser.
  private func next(after address: String, _ jar: String) async throws -> String {
    try await ChildProcess.run(
      "/usr/bin/curl",
      ["-s", "-o", "/dev/null", "-w", "%{redirect_url}", "-b", jar, "-c", jar, "--max-time", "20", address]
    ).output.joined()
  }
}
