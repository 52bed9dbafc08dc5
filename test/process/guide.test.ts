/**
 * The commands of GUIDE.md, run one after the other by a shell against a fresh start, as a reader
 * would.
 */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { settingsOfDatabase } from '../support/program-database.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { startProgram } from './program.ts'

const folder = temporaryFolder()

/** They install, serve, back up SQLite, or only set the environment: other tests do so. */
const isNotTried = (block: string): boolean =>
  /^(?:git |npm |apt |docker |mkdir -p \/opt\/|npx tollgate backup |[A-Z_]+=)/.test(block)

/** The refusals of the examples, because no phone is registered and no call lives. */
const expectedRefusals = ['extension_unregistered', 'not_found', 'not_found']

/** Somebody who reads the guide is slower than this shell: the first call has a record by then. */
const untilRecorded =
  'for _ in $(seq 100); do get "/reports/cdrs?start_date=2026-01-01T00:00:00Z&' +
  'end_date=2027-01-01T00:00:00Z" | grep -q call_uuid && break; sleep 0.1; done'

test('every command of the guide is right', async () => {
  // No relay answers there: the rules of media are only written.
  const environment = {
    ...(await settingsOfDatabase(join(folder, 'guide.db'))),
    RTPENGINE: 'udp/127.0.0.1:9',
  }
  const program = startProgram([], environment)
  const [, api = ''] = /api=(\S+)/.exec(await program.line(/^ready /)) ?? []

  const blocks = [...readFileSync('GUIDE.md', 'utf8').matchAll(/```sh\n([\s\S]*?)\n```/g)]
    .map(([, block = '']) => block.replaceAll('127.0.0.1:8080', api))
    .filter((block) => !isNotTried(block))
  expect(blocks.length).toBeGreaterThan(12)
  const tollgate = `"${process.execPath}" "${resolve('dist/main.js')}"`
  const script = [
    'set -o pipefail',
    `npx() { shift; ${tollgate} "$@" || echo "failed: $*" >&2; }`,
    ...blocks.map((block) => (block.includes('last.json') ? `${untilRecorded}\n${block}` : block)),
  ].join('\n')
  const shell = await promisify(execFile)('bash', ['--norc', '-c', script], {
    cwd: folder,
    env: { PATH: process.env['PATH'] ?? '', ...environment },
    timeout: 150_000,
  })

  expect(shell.stderr).toBe('')
  const refusals = [...shell.stdout.matchAll(/"success":false[^}]*"code":"(\w+)"/g)]
  expect(refusals.map(([, code = '']) => code)).toEqual(expectedRefusals)
  program.child.kill('SIGTERM')
  expect(await program.ended).toBe(0)
})
