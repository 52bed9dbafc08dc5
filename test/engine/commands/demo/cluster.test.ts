import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runCommandLine } from '../../../../engine/commands/index.ts'
import { runCluster } from '../../../../engine/commands/demo/cluster.ts'
import { findPostgres } from '../../../../engine/commands/demo/temporary-postgres.ts'
import { temporaryFolder } from '../../../support/temporary-folder.ts'
import { fakeWorld } from '../fake-world.ts'

test('without PostgreSQL a demo with several instances says what to install', async () => {
  await expect(runCluster(3, fakeWorld({}), '')).rejects.toThrow(/apt install postgresql/)
})

test.each(['1', '10', '2.5', 'three', ''])('--nodes %s is refused', async (count) => {
  const world = fakeWorld({})
  expect(await runCommandLine(['demo', '--nodes', count], world)).toBe(2)
  expect(world.complaints).toEqual([`tollgate: --nodes ${count}: allowed is a number from 2 to 9`])
})

test('the newest PostgreSQL of 15 and later is taken, wherever it is installed', () => {
  const root = temporaryFolder()
  const install = (...folders: readonly string[]): string => {
    const folder = join(root, ...folders)
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'initdb'), '')
    return folder
  }
  const places = [join(root, 'debian'), join(root, 'brew'), join(root, 'fedora')]
  expect(findPostgres(places)).toBeUndefined()
  const fedora = install('fedora', 'bin')
  expect(findPostgres(places)).toBe(fedora)
  const brew = install('brew', 'postgresql@17', 'bin')
  expect(findPostgres(places)).toBe(brew)
  install('debian', '14', 'bin')
  expect(findPostgres(places)).toBe(brew)
  install('debian', '9', 'bin')
  install('debian', '15', 'bin')
  const newest = install('debian', '16', 'bin')
  expect(findPostgres(places)).toBe(newest)
})
