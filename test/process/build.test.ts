/** A clone is built again while Tollgate serves from it. */
import { execFileSync } from 'node:child_process'
import { appendFileSync, cpSync, mkdtempSync, readdirSync, symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { onSqlite } from '../support/on-sqlite.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { startProgram } from './program.ts'

/** The files that the build reads, but for the packages. */
const sources = ['build.mjs', 'GUIDE.md', 'package.json', 'engine', 'control', 'schema', 'examples']

const folder = temporaryFolder()

function cloneHere(): string {
  const clone = mkdtempSync(join(folder, 'clone-'))
  for (const name of sources) cpSync(name, join(clone, name), { recursive: true })
  symlinkSync(resolve('node_modules'), join(clone, 'node_modules'))
  return clone
}

const build = (clone: string): void =>
  void execFileSync(process.execPath, ['build.mjs'], { cwd: clone, stdio: 'pipe' })

/** Any other content of the binary of SQLite, with the same code. */
function changeBinaries(clone: string): void {
  for (const name of readdirSync(join(clone, 'dist/prebuilds'), { recursive: true }).map(String))
    if (name.endsWith('.node')) appendFileSync(join(clone, 'dist/prebuilds', name), '\n')
}

onSqlite('file')(
  'a server that runs from a folder does not notice that it is built again, and again with changes',
  async () => {
    const clone = cloneHere()
    build(clone)
    // The next build finds other binaries than its own: it has to replace what the server has
    // mapped.
    changeBinaries(clone)
    const program = startProgram(['serve'], {}, clone, join(clone, 'dist/main.js'))
    const [, password = ''] = /password (\S+)/.exec(await program.line(/^created user admin/)) ?? []
    const [, api = ''] = /api=(\S+)/.exec(await program.line(/^ready /)) ?? []
    const get = (path: string, init?: RequestInit) => fetch(`http://${api}${path}`, init)
    const login = await get('/api/v1/auth/login', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ username: 'admin', password }),
    })
    const { data } = (await login.json()) as { readonly data: { readonly token: string } }
    const headers = { Authorization: `Bearer ${data.token}` }
    const page = await (await get('/')).text()
    const assets = [...page.matchAll(/"(\/console\/assets\/[^"]+)"/g)].map(([, path = '']) => path)
    // The script, what it imports at once, the style and the icon.
    expect(assets.length).toBeGreaterThan(3)
    const threadsBefore = threads(clone)

    build(clone)
    appendFileSync(join(clone, 'control/console/web/main.tsx'), '\nconsole.debug(1)\n')
    appendFileSync(
      join(clone, 'control/reports/report-worker.ts'),
      '\nthrow new Error("not mine")\n',
    )
    build(clone)

    for (const path of assets) expect((await get(path)).status).toBe(200)
    expect((await get('/docs/swagger-ui.css')).status).toBe(200)
    // It reads the database, in a thread of its own build, and writes to it.
    const at = (ms: number): string => new Date(Date.now() + ms).toISOString()
    const period = `start_date=${at(-3_600_000)}&end_date=${at(0)}`
    const report = await get(`/api/v1/reports/calls?${period}&group_by=hour`, { headers })
    expect(`${report.status} ${await report.text()}`).toMatch(/^200 /)
    for (const name of threadsBefore) expect(threads(clone)).toContain(name)
    expect((await get('/readyz')).status).toBe(200)
    expect(program.child.exitCode).toBe(null)
    expect(program.child.signalCode).toBe(null)
    program.child.kill('SIGTERM')
    expect(await program.ended).toBe(0)

    // A page of before the build finds its assets at the next server, too.
    const next = startProgram(['serve'], {}, clone, join(clone, 'dist/main.js'))
    const [, nextApi = ''] = /api=(\S+)/.exec(await next.line(/^ready /)) ?? []
    const nextPage = await (await fetch(`http://${nextApi}/`)).text()
    expect(nextPage).not.toBe(page)
    for (const path of assets) expect((await fetch(`http://${nextApi}${path}`)).status).toBe(200)
  },
)

const threads = (clone: string): readonly string[] =>
  readdirSync(join(clone, 'dist')).filter((name) => /-worker.*\.js$/.test(name))

const sharedIn = (names: readonly string[]): readonly string[] =>
  names.filter((name) => /(?:^|\/)shared-\w+\.js$/.test(name))

test('what earlier builds have left stays in the folder, and is not in the package', () => {
  const clone = cloneHere()
  build(clone)
  appendFileSync(join(clone, 'control/console/web/guide.ts'), '\nconsole.debug(1)\n')
  appendFileSync(join(clone, 'schema/clock.ts'), '\nconsole.debug(1)\n')
  const before = readdirSync(join(clone, 'dist/console/assets'))
  const shared = sharedIn(readdirSync(join(clone, 'dist')))
  build(clone)
  const after = readdirSync(join(clone, 'dist/console/assets'))
  expect(after).toEqual(expect.arrayContaining(before))
  const words = ['pack', '--ignore-scripts', '--dry-run', '--json']
  const [{ files = [] } = {}] = JSON.parse(
    execFileSync('npm', words, { cwd: clone, stdio: ['ignore', 'pipe', 'ignore'] }).toString(),
  ) as { readonly files?: readonly { readonly path: string }[] }[]
  const packed = files.map(({ path }) => path)
  expect(packed.filter((path) => /guide-\w+\.js$/.test(path))).toHaveLength(1)
  expect(sharedIn(packed)).toHaveLength(shared.length)
  const left = sharedIn(readdirSync(join(clone, 'dist')))
  expect(left).toEqual(expect.arrayContaining([...shared]))
  expect(left.length).toBeGreaterThan(shared.length)
  expect(after.filter((name) => /^guide-\w+\.js$/.test(name))).toHaveLength(2)
})
