/** A file of hooks in the built program. */
import { mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { eventually } from '../support/waiting.ts'
import { startProgram } from './program.ts'

const folder = temporaryFolder()

function placeOf(text: string) {
  const cwd = mkdtempSync(join(folder, 'place-'))
  const write = (content: string): void => writeFileSync(join(cwd, 'hooks.ts'), content)
  write(text)
  const environment = {
    HOOKS: './hooks.ts',
    DATABASE_PATH: join(cwd, 'tollgate.db'),
    ADMIN_PASSWORD: 'correct horse',
    CRM_URL: 'https://crm.example',
  }
  return { cwd, write, environment }
}

test('a file that cannot be loaded ends the start with exit code 2 and one line', async () => {
  const { cwd, environment } = placeOf('export const one: number = 1\nexport const onInvite = {{\n')
  const { ended, complaints } = startProgram(['serve'], environment, cwd)
  expect(await ended).toBe(2)
  expect(complaints.filter((line) => !line.startsWith('{'))).toEqual([
    expect.stringMatching(/^tollgate: HOOKS: hooks\.ts:2: SyntaxError: /),
  ])
})

test('a file is loaded with its environment, and again when it changes or at SIGHUP', async () => {
  const text = (words: string): string =>
    `const { CRM_URL, ADMIN_PASSWORD }: Record<string, string | undefined> = process.env
console.log('${words}', CRM_URL, ADMIN_PASSWORD)
export const onInvite = (call: { readonly to: string }) => ({ to: call.to })
`
  const { cwd, write, environment } = placeOf(text('first'))
  const program = startProgram(['serve'], environment, cwd)
  const [, api = ''] = /api=(\S+)/.exec(await program.line(/^ready /)) ?? []
  const said = (pattern: RegExp) =>
    eventually(() => expect(program.complaints).toContainEqual(expect.stringMatching(pattern)))
  await said(/hooks: first https:\/\/crm\.example undefined/)

  write(text('second'))
  await said(/hooks: second https:\/\/crm\.example undefined/)
  await said(/hooks: hooks\.ts is loaded again/)
  write(`${text('third')}\nnull.x\n`)
  await said(/hooks: the file is not loaded; the last one stays in charge: hooks\.ts:5: TypeError/)

  const json = { 'Content-Type': 'application/json' }
  const body = JSON.stringify({ username: 'admin', password: 'correct horse' })
  const answer = await fetch(`http://${api}/api/v1/auth/login`, {
    method: 'POST',
    headers: json,
    body,
  })
  const { data } = (await answer.json()) as { readonly data: { readonly token: string } }
  const headers = { Authorization: `Bearer ${data.token}` }
  const read = async (path: string) => fetch(`http://${api}${path}`, { headers })
  const metrics = async () => (await read('/metrics')).text()
  expect(await metrics()).toContain('\ntollgate_hooks_failed_reloads_total 1\n')
  const findings = async () =>
    ((await (await read('/api/v1/anomalies?kinds=hook')).json()) as { readonly data: object }).data
  expect(await findings()).toMatchObject({
    findings: [
      {
        kind: 'hook',
        subject: 'file hooks.ts',
        what: expect.stringMatching(/^hooks\.ts has failed 1 time since .*hooks\.ts:5: TypeError/),
        evidence: ['hooks.ts:5'],
        figures: { failures: 1 },
      },
    ],
  })

  program.child.kill('SIGHUP')
  await eventually(async () =>
    expect(await metrics()).toContain('\ntollgate_hooks_failed_reloads_total 2\n'),
  )
  write(text('fourth'))
  await said(/hooks: fourth/)
  await eventually(async () => expect(await findings()).toMatchObject({ findings: [] }))
  program.child.kill('SIGTERM')
  expect(await program.ended).toBe(0)
})
