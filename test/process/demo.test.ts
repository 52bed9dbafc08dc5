import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { endWith, findPostgres } from '../../engine/commands/demo/temporary-postgres.ts'
import { eventually } from '../support/waiting.ts'
import { startProgram } from './program.ts'

test('the demo prints one line per call record, and Ctrl-C ends it without a trace', async () => {
  const program = startProgram(['demo'])
  const [, password = ''] = /password (\S+)/.exec(await program.line(/^created user admin/)) ?? []
  const [, database = ''] = /database (\S+\.db)/.exec(await program.line(/^demo: /)) ?? []
  expect(existsSync(database)).toBe(true)
  const [, page = ''] = /(http:\S+\/);/.exec(await program.line(/^console: /)) ?? []
  const headers = { 'Content-Type': 'application/json', 'Sec-Fetch-Site': 'same-origin' }
  const body = JSON.stringify({ username: 'admin', password })
  const session = await fetch(`${page}api/v1/auth/session`, { method: 'POST', headers, body })
  expect(session.status).toBe(200)
  expect(await (await fetch(page)).text()).toContain('/console/assets/')
  const record = await program.line(/ANSWERED/)
  expect(record).toMatch(
    /^\d\d:\d\d:\d\d {2}\+15550100 → 1555020\d {2}ANSWERED +\d+ s {2}0\.\d+ USD {2}balance 99\.\d+ {2}127\.0\.0\.1:\d+$/,
  )
  program.child.kill('SIGINT')
  expect(await program.ended).toBe(0)
  expect(existsSync(database)).toBe(false)
})

const hasPostgres = findPostgres() !== undefined || process.env['CI'] === 'true'

test.runIf(hasPostgres)(
  'with --nodes 3 the demo has three instances on one PostgreSQL, calls go through each, and Ctrl-C ends them all',
  async () => {
    const program = startProgram(['demo', '--nodes', '3'])
    const [, password = ''] = /password (\S+)/.exec(await program.line(/^created user admin/)) ?? []
    const [, folder = ''] =
      /host=(\S+)%2Fpostgres;/.exec(await program.line(/^demo: 3 nodes/)) ?? []
    const socket = join(decodeURIComponent(folder), 'postgres', '.s.PGSQL.5432')
    expect(existsSync(socket)).toBe(true)
    const nodes = await Promise.all(
      [1, 2, 3].map(async (number) => {
        const line = await program.line(new RegExp(`^demo: node demo-${number}:`))
        const [, pid, page = ''] = /process (\d+), .* console (\S+)\/$/.exec(line) ?? []
        return { pid: Number(pid), page }
      }),
    )
    const headers = { 'Content-Type': 'application/json' }
    const body = JSON.stringify({ username: 'admin', password })
    const login = await fetch(`${nodes[0]?.page}/api/v1/auth/login`, {
      method: 'POST',
      headers,
      body,
    })
    const { data } = (await login.json()) as { readonly data: { readonly token: string } }
    for (const { page } of nodes) {
      const authorization = { Authorization: `Bearer ${data.token}` }
      await eventually(async () => {
        const answer = await fetch(`${page}/api/v1/nodes`, { headers: authorization })
        const list = (await answer.json()) as {
          readonly data: readonly { readonly state: string }[]
        }
        expect(list.data.map(({ state }) => state)).toEqual(['serving', 'serving', 'serving'])
      })
    }
    for (const number of [1, 2, 3]) await program.line(new RegExp(`ANSWERED.* by demo-${number}$`))
    program.child.kill('SIGINT')
    expect(await program.ended).toBe(0)
    expect(existsSync(decodeURIComponent(folder))).toBe(false)
    for (const { pid } of nodes) expect(() => process.kill(pid, 0)).toThrow('ESRCH')
  },
)

test('instances of a demo end with it, also when it is killed', { timeout: 60_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-ends-'))
  const owner = spawn('sleep', ['60'])
  const child = spawn('sleep', ['60'])
  endWith(owner.pid ?? 0, child.pid ?? 0, 'TERM', folder)
  owner.kill('SIGKILL')
  const [, signal] = await once(child, 'exit')
  expect(signal).toBe('SIGTERM')
  await eventually(() => expect(existsSync(folder)).toBe(false))
})
