import Foundation
import ProcessSignals
import TestSupport
import Testing

@Suite("Files that are written as drafts", .serialized, .timeLimit(.minutes(1)))
struct TemporaryFileTests {
  @Test("stand in their place whole, with mode 0600, or not at all")
  func placed() async throws {
    try await Places.withTemporaryFolder { folder in
      let place = folder + "/file"
      try Data("old".utf8).write(to: URL(filePath: place))
      do {
        let draft = try TemporaryFile(for: place)
        try draft.withDescriptor { try FileHandle(fileDescriptor: $0).write(contentsOf: Data("half".utf8)) }
      }
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["file"])
      do {
        let draft = try TemporaryFile(for: place)
        try draft.withDescriptor { try FileHandle(fileDescriptor: $0).write(contentsOf: Data("new".utf8)) }
        #expect(try Data(contentsOf: URL(filePath: place)) == Data("old".utf8))
        try draft.place()
      }
      #expect(try Data(contentsOf: URL(filePath: place)) == Data("new".utf8))
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["file"])
      #expect(try FileManager.default.attributesOfItem(atPath: place)[.posixPermissions] as? Int == 0o600)
      #expect(throws: TemporaryFile.WriteError.self) { try TemporaryFile(for: folder + "/none/file") }
    }
  }

  @Test("that are being given their place are given it before a signal ends the process, with all that belongs to it")
  func finished() async throws {
    try await Places.withTemporaryFolder { folder async throws in
      await #expect(processExitsWith: .signal(SIGTERM)) { [folder = folder as String] in
        TemporaryFileRegistry.endWithSignals()
        let draft = try TemporaryFile(for: folder + "/file")
        try draft.place(finishing: {
          kill(getpid(), SIGTERM)
          usleep(300_000)
          try Data().write(to: URL(filePath: folder + "/finished"))
        })
        usleep(10_000_000)
      }
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder).sorted() == ["file", "finished"])
    }
  }

  @Test("of many that are made for a place at once none is taken for abandoned, and each is whole")
  func atOnce() async throws {
    try await Places.withTemporaryFolder { folder in
      let place = folder + "/file"
      let contents = (0..<8).map { Data(repeating: UInt8($0), count: 100_000) }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in contents.indices {
          group.addTask {
            await #expect(processExitsWith: .success) { [place = place as String, number = number as Int] in
              for _ in 0..<20 {
                let draft = try TemporaryFile(for: place)
                let content = Data(repeating: UInt8(number), count: 100_000)
                try draft.withDescriptor { try FileHandle(fileDescriptor: $0).write(contentsOf: content) }
                try draft.place()
              }
            }
          }
        }
        try await group.waitForAll()
      }
      #expect(contents.contains(try Data(contentsOf: URL(filePath: place))))
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["file"])
    }
  }
}
