/// All records, read and written through one transaction. Its repositories are extensions, a file each.
struct SQLRecords {
  let sql: any SQLSession
}
