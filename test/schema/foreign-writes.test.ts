import { join } from 'node:path'
import { expect, test } from 'vitest'
import { foreignWrites } from '../../schema/foreign-writes.ts'
import { openDatabase } from '../../schema/open.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

test('a commit of another connection is told once, an own one never', () => {
  const path = join(temporaryFolder(), 'tollgate.db')
  const [own, other] = [openDatabase(path), openDatabase(path)]
  own.sqlite.exec('CREATE TABLE t (x)')
  const hasForeignWrites = foreignWrites(own)
  own.sqlite.exec('INSERT INTO t VALUES (1)')
  expect(hasForeignWrites()).toBe(false)
  other.sqlite.exec('INSERT INTO t VALUES (2)')
  expect([hasForeignWrites(), hasForeignWrites()]).toEqual([true, false])
  own.close()
  other.close()
})
