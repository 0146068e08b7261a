import Foundation
import ProcessSignals
import TestSupport
import Testing

@Suite("Temporary files", .serialized, .timeLimit(.minutes(1)))
struct TemporaryFileTests {
  @Test("A file appears at its destination complete and with mode 0600, or not at all")
  func placed() async throws {
    try await Places.withTemporaryFolder { folder in
      let destination = folder + "/file"
      try Data("old".utf8).write(to: URL(filePath: destination))
      do {
        let temporary = try TemporaryFile(for: destination)
        try temporary.withDescriptor { try FileHandle(fileDescriptor: $0).write(contentsOf: Data("half".utf8)) }
      }
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["file"])
      do {
        let temporary = try TemporaryFile(for: destination)
        try temporary.withDescriptor { try FileHandle(fileDescriptor: $0).write(contentsOf: Data("new".utf8)) }
        #expect(try Data(contentsOf: URL(filePath: destination)) == Data("old".utf8))
        try temporary.place()
      }
      #expect(try Data(contentsOf: URL(filePath: destination)) == Data("new".utf8))
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["file"])
      #expect(try FileManager.default.attributesOfItem(atPath: destination)[.posixPermissions] as? Int == 0o600)
      #expect(throws: TemporaryFile.WriteError.self) { try TemporaryFile(for: folder + "/none/file") }
    }
  }

  @Test("A process with the same id, as in another container, keeps its unfinished file; an abandoned one is removed")
  func sameID() async throws {
    try await Places.withTemporaryFolder { folder in
      let destination = folder + "/file"
      let other = "\(destination).new-\(getpid())"
      let descriptor = open(other, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
      #expect(descriptor >= 0 && flock(descriptor, LOCK_EX | LOCK_NB) == 0)
      for text in ["first", "second"] {
        let temporary = try TemporaryFile(for: destination)
        try temporary.write(Array(text.utf8))
        try temporary.place()
        #expect(try Data(contentsOf: URL(filePath: destination)) == Data(text.utf8))
      }
      let names = try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
      #expect(names == ["file", "file.new-\(getpid())"])
      close(descriptor)
      try TemporaryFile(for: destination).place()
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["file"])
    }
  }

  @Test("A file that is being moved to its destination is finished before a signal ends the process")
  func finished() async throws {
    try await Places.withTemporaryFolder { folder async throws in
      await #expect(processExitsWith: .signal(SIGTERM)) { [folder = folder as String] in
        TemporaryFileRegistry.endWithSignals()
        let temporary = try TemporaryFile(for: folder + "/file")
        try temporary.place(finishing: {
          kill(getpid(), SIGTERM)
          usleep(300_000)
          try Data().write(to: URL(filePath: folder + "/finished"))
        })
        usleep(10_000_000)
      }
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder).sorted() == ["file", "finished"])
    }
  }

  @Test("The signal that ends a process and its programs is not reported as an end of a program")
  func ended() async throws {
    _ = try await Places.withTemporaryFolder { folder async throws in
      await #expect(processExitsWith: .signal(SIGTERM)) { [folder = folder as String] in
        TemporaryFileRegistry.endWithSignals()
        let program = try #require(OwnedProcessGroups.start { Self.leader() })
        try TemporaryFile(for: folder + "/file").place(finishing: {
          kill(getpid(), SIGTERM)
          var information = siginfo_t()
          while waitid(P_PID, id_t(program), &information, WEXITED | WNOWAIT) != 0 {}
          // What waits for a program would now say that it has ended.
          Thread.detachNewThread {
            OwnedProcessGroups.forget(program)
            exit(3)
          }
          usleep(300_000)
        })
        usleep(10_000_000)
      }
    }
  }

  /// Starts sleep(1) as the leader of a new group.
  private static func leader() -> pid_t? {
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP))
    var words: [UnsafeMutablePointer<CChar>?] = [strdup("sleep"), strdup("60"), nil]
    defer { for word in words { free(word) } }
    var id: pid_t = 0
    return posix_spawnp(&id, "sleep", nil, &attributes, &words, environ) == 0 ? id : nil
  }

  @Test("Concurrent writers of one file do not remove each other's temporary files, and each file is complete")
  func atOnce() async throws {
    try await Places.withTemporaryFolder { folder in
      let destination = folder + "/file"
      let contents = (0..<8).map { Data(repeating: UInt8($0), count: 100_000) }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in contents.indices {
          group.addTask {
            await #expect(processExitsWith: .success) { [destination = destination as String, number = number as Int] in
              for _ in 0..<20 {
                let temporary = try TemporaryFile(for: destination)
                let content = Data(repeating: UInt8(number), count: 100_000)
                try temporary.withDescriptor { try FileHandle(fileDescriptor: $0).write(contentsOf: content) }
                try temporary.place()
              }
            }
          }
        }
        try await group.waitForAll()
      }
      #expect(contents.contains(try Data(contentsOf: URL(filePath: destination))))
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["file"])
    }
  }
}
