import Foundation
import GateProcesses
import Glibc
import PostgresServers
import TestSupport
import Testing
import Transport
import TransportEngine

@Suite(
  "Full and read-only disks", .serialized, .enabled(if: SmallDisk.isPermitted, "this user may not mount a disk")
)
struct DiskTests {
  @Test(
    "On a full disk new sockets are refused and open ones stay; with free space new ones open without a restart")
  func full() async throws {
    try await SmallDisk.with(kibibytes: 8192) { disk in
      try await Self.serving("sqlite://\(disk.path)/state.db") { gate, visitor in
        let phone = try Phone(of: gate.authority)
        try await visitor.register(phone)
        let socket = try await visitor.open(as: phone, counter: 1)
        disk.fill()
        var counter: UInt32 = 2
        // SQLite first uses the free space in its own files.
        while try await visitor.refusal(of: phone.credentials(over: visitor.challenge(), counter: counter)) == nil {
          counter += 1
          if counter > 3000 { throw Unexpected("the disk does not fill up") }
        }
        #expect(
          try await visitor.refusal(of: phone.credentials(over: visitor.challenge(), counter: counter))
            == "store_unavailable")
        #expect(try await socket.exchange(.text("alive")) == .text("alive"))
        disk.makeRoom()
        let next = try await visitor.open(as: phone, counter: counter + 1)
        #expect(try await next.exchange(.text("back")) == .text("back"))
        #expect(try await socket.exchange(.text("alive")) == .text("alive"))
      }
    }
  }

  @Test(
    "On a read-only disk the gate starts, refuses and logs why; once writable, sockets open without a restart")
  func readOnly() async throws {
    try await SmallDisk.with(kibibytes: 8192) { disk in
      try disk.remount(readOnly: true)
      try await Self.serving("sqlite://\(disk.path)/state.db") { gate, visitor in
        let phone = try Phone(of: gate.authority)
        _ = try await gate.process.errors.first("the reason") { $0.contains("store_read_only") }
        #expect(await (try? visitor.register(phone)) == nil)
        try disk.remount(readOnly: false)
        try await visitor.register(phone)
        let socket = try await visitor.open(as: phone, counter: 1)
        #expect(try await socket.exchange(.text("back")) == .text("back"))
      }
    }
  }

  @Test(
    "On PostgreSQL with a full disk, new sockets are refused, open ones stay, and service resumes without a restart"
  )
  func fullServer() async throws {
    let server = try await PostgresServer.start()
    try await SmallDisk.with(kibibytes: 16_384) { disk in
      // Only tables: the write-ahead log is on another disk, as in a recommended setup.
      try await server.useTablespace(at: disk.path)
      try await Self.serving(PostgresServer.url(of: [server])) { gate, visitor in
        let phone = try Phone(of: gate.authority)
        try await visitor.register(phone)
        let socket = try await visitor.open(as: phone, counter: 1)
        disk.fill()
        var counter: UInt32 = 2
        while try await visitor.refusal(of: phone.credentials(over: visitor.challenge(), counter: counter)) == nil {
          counter += 1
          if counter > 3000 { throw Unexpected("the disk does not fill up") }
        }
        #expect(try await socket.exchange(.text("alive")) == .text("alive"))
        disk.makeRoom()
        let next = try await visitor.open(as: phone, counter: counter + 1)
        #expect(try await next.exchange(.text("back")) == .text("back"))
      }
      try await server.crash()
    }
  }

  private static func serving(
    _ url: String, _ body: (GateProcess, Visitor) async throws -> Void
  ) async throws {
    try await EchoProcess.serving { upstream in
      var plan = GatePlan()
      plan.routes = [("/", upstream)]
      plan.storeURL = url
      try await GateProcess.serving(plan) { gate in try await body(gate, Visitor(to: gate)) }
    }
  }
}
