import { join } from 'node:path'
import { expect, test } from 'vitest'
import { followForeignWrites, foreignWrites } from '../../schema/foreign-writes.ts'
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

test('a reload that fails after a commit of another connection is tried again', async () => {
  const path = join(temporaryFolder(), 'tollgate.db')
  const [own, other] = [openDatabase(path), openDatabase(path)]
  const told: string[] = []
  let isBroken = true
  const reload = async (): Promise<void> => {
    told.push('reload')
    if (isBroken) throw new Error('no')
  }
  const follow = followForeignWrites(own, reload, (level) => told.push(level))
  const look = async (): Promise<readonly string[]> => {
    follow()
    await new Promise((resolve) => setImmediate(resolve))
    return told.splice(0)
  }
  expect(await look()).toEqual([])
  other.sqlite.exec('CREATE TABLE t (x)')
  expect(await look()).toEqual(['reload', 'error'])
  isBroken = false
  expect(await look()).toEqual(['reload'])
  expect(await look()).toEqual([])
  own.close()
  other.close()
})
