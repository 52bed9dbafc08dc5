import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
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
    /^\d\d:\d\d:\d\d {2}\+15550100 → 1555020\d {2}ANSWERED +\d s {2}0\.0\d+ USD {2}balance 99\.\d+ {2}127\.0\.0\.1:\d+$/,
  )
  program.child.kill('SIGINT')
  expect(await program.ended).toBe(0)
  expect(existsSync(database)).toBe(false)
})

test('npx tollgate runs the built program', () => {
  const { status, stdout } = spawnSync('npx', ['--no-install', 'tollgate', '--help'], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  expect(status).toBe(0)
  expect(stdout).toMatch(/^tollgate: a telephony platform/)
})
