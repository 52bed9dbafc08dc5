import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { installIdAt } from '../../../schema/instances/instance-registry.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

const bytes = (size: number): Buffer => Buffer.alloc(size, 0xab)

test('a disk keeps its number', () => {
  const path = join(temporaryFolder(), 'tollgate.db')
  expect(installIdAt(path, bytes)).toBe('ab'.repeat(16))
  expect(installIdAt(path, () => Buffer.alloc(16, 1))).toBe('ab'.repeat(16))
  expect(readFileSync(`${path}.node`, 'utf8')).toBe(`${'ab'.repeat(16)}\n`)
  expect(statSync(`${path}.node`).mode & 0o777).toBe(0o600)
})

test('a damaged number is refused, not replaced', () => {
  const path = join(temporaryFolder(), 'tollgate.db')
  writeFileSync(`${path}.node`, 'xyz')
  expect(() => installIdAt(path, bytes)).toThrow('is damaged')
  expect(() => installIdAt('/nowhere/tollgate.db', bytes)).toThrow('cannot use /nowhere')
})
