internal import ByteCoding
internal import Foundation
internal import MFADomain

extension SQLRecords: ExportRecords {
  func auditExport(_ name: String) throws -> AuditExport? {
    try sql.rows("SELECT * FROM audit_exports WHERE name = ?", [.text(name)]).first.map { row in
      AuditExport(
        name: name, position: AuditPosition(sequence: try row.integer("sequence"), hash: try row.blob("hash")),
        holder: try row.uuid("holder"), heldUntil: try row.time("held_until"))
    }
  }

  func save(_ export: AuditExport) throws {
    try sql.run(
      """
      INSERT INTO audit_exports (name, sequence, hash, holder, held_until) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT (name) DO UPDATE SET sequence = excluded.sequence, hash = excluded.hash, holder = excluded.holder,
        held_until = excluded.held_until
      """,
      [
        .text(export.name), .integer(export.position.sequence), .blob(export.position.hash), .uuid(export.holder),
        .time(export.heldUntil),
      ])
  }
}
