import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, onTestFinished, test } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { eventually } from '../support/waiting.ts'

const folder = temporaryFolder()

/** Makes this process, but no child of it, look like an old Node. */
const oldNode = join(folder, 'old-node.cjs')
writeFileSync(
  oldNode,
  `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.20.2' } })`,
)

test('an old Node without a newer one beside it: exit code 1 and the one line that says which it needs', () => {
  const alone = join(folder, 'main.mjs')
  copyFileSync('dist/main.js', alone)
  const ended = spawnSync(process.execPath, ['-r', oldNode, alone, 'serve'], { encoding: 'utf8' })
  expect(ended).toMatchObject({
    status: 1,
    stdout: '',
    stderr:
      'tollgate: needs Node 22.14 or newer and runs on 20.20.2: install a newer Node, or run "npm ci" in its folder, which brings one\n',
  })
})

test('an old Node restarts the program on the one that npm installed: arguments, output and exit code are its own', () => {
  const runOnOld = (...words: string[]) =>
    spawnSync(process.execPath, ['-r', oldNode, 'dist/main.js', ...words], { encoding: 'utf8' })
  expect(runOnOld('--version')).toMatchObject({
    status: 0,
    stdout: expect.stringMatching(/^tollgate \d+\.\d+\.\d+\n$/) as string,
    stderr: '',
  })
  expect(runOnOld('nonsense')).toMatchObject({
    status: 2,
    stdout: '',
    stderr: 'tollgate: unknown command "nonsense"; see tollgate --help\n',
  })
})

test.runIf(process.platform === 'linux')(
  'started by an old Node, it ends with its launcher: after kill -9 the next start has its ports and its database, and drains at SIGTERM',
  async () => {
    const environment = {
      API_LISTEN: `127.0.0.1:${await freePort()}`,
      SIP_LISTEN: `udp/127.0.0.1:${await freePort()}`,
      DATABASE_PATH: join(mkdtempSync(join(folder, 'killed-')), 'tollgate.db'),
    }
    const launcher = await serve(['-r', oldNode], environment)
    const children = `/proc/${String(launcher.pid)}/task/${String(launcher.pid)}/children`
    const program = readFileSync(children, 'utf8').trim()
    onTestFinished(() => {
      if (existsSync(`/proc/${program}`)) process.kill(Number(program), 'SIGKILL')
    })
    launcher.kill('SIGKILL')
    await eventually(() => expect(existsSync(`/proc/${program}`)).toBe(false), 3_000)
    const next = await serve(['-r', oldNode], environment)
    const ended = once(next, 'exit')
    next.kill('SIGTERM')
    expect(await ended).toEqual([0, null])
  },
)

test.runIf(process.platform === 'linux').each([
  ['-', '--max-semi-space-size=8'],
  ['_', '--max_semi_space_size=8'],
])("an operator's own semi-space in NODE_OPTIONS, with %s, holds", async (_sign, options) => {
  const child = await serve([], {
    NODE_OPTIONS: options,
    API_LISTEN: '127.0.0.1:0',
    SIP_LISTEN: 'udp/127.0.0.1:0',
    DATABASE_PATH: join(mkdtempSync(join(folder, 'heap-')), 'tollgate.db'),
  })
  const words = readFileSync(`/proc/${String(child.pid)}/cmdline`, 'utf8').split('\0')
  expect(words.slice(1)).toEqual(['dist/main.js', 'serve', ''])
})

test.each([
  [
    'the program',
    'dist/main.js',
    'dist/tollgate.js',
    ['--version'],
    /the package [\w/@-]+ is missing/,
  ],
  ['the build', 'build.mjs', 'package.json', [], /the package esbuild is missing/],
])(
  'without its packages %s says in one sentence what to do',
  (_what, entry, beside, words, said) => {
    const place = mkdtempSync(join(folder, 'alone-'))
    writeFileSync(join(place, 'package.json'), '{"type":"module"}')
    for (const file of [beside, entry]) copyFileSync(file, join(place, basename(file)))
    const ended = spawnSync(process.execPath, [join(place, basename(entry)), ...words], {
      encoding: 'utf8',
    })
    expect(ended).toMatchObject({ status: 1, stdout: '' })
    expect(ended.stderr).toMatch(said)
    expect(ended.stderr).toMatch(/^tollgate: .*: run "npm ci" in the folder of Tollgate\n$/)
  },
)

/** Until it is ready. */
async function serve(nodeWords: readonly string[], environment: Record<string, string>) {
  const child = spawn(process.execPath, [...nodeWords, 'dist/main.js', 'serve'], {
    env: {
      PATH: process.env['PATH'],
      EDGE_LISTEN: '127.0.0.1:0',
      ...environment,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  for await (const line of createInterface({ input: child.stdout }))
    if (line.startsWith('ready ')) return child
  throw new Error('it ended before it was ready')
}
