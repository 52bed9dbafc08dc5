/**
 * The package as npm publishes it: installed in an empty folder without a network, by someone
 * without a clone.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join, resolve } from 'node:path'
import { Webhook } from 'standardwebhooks'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { eventually } from '../support/waiting.ts'
import { type Program, startProgram } from './program.ts'

const folder = temporaryFolder()
const place = join(folder, 'place')
const installed = join(place, 'node_modules/tollgate')
const compiler = join(process.cwd(), 'node_modules/typescript/bin/tsc')
let bytes = 0

interface Manifest {
  readonly scripts: Readonly<Record<string, string>>
  readonly files: readonly string[]
  readonly dependencies: Readonly<Record<string, string>>
  readonly bundleDependencies: readonly string[]
  readonly optionalDependencies: Readonly<Record<string, string>>
  readonly exports: Readonly<Record<string, string | Readonly<Record<string, string>>>>
}

const manifestOf = (path: string): Manifest =>
  JSON.parse(readFileSync(join(path, 'package.json'), 'utf8')) as Manifest

/** The packages with the binary of argon2 that npm has installed for this system. */
const binaries = (): readonly string[] =>
  readdirSync('node_modules/@node-rs')
    .filter((name) => name.startsWith('argon2-'))
    .map((name) => `@node-rs/${name}`)

beforeAll(() => {
  const run = (command: string, words: readonly string[], cwd?: string): void =>
    void execFileSync(command, words, { cwd, stdio: 'pipe' })
  // The steps of `prepack`, beside the build, which other tests are using.
  expect(manifestOf('.').scripts['prepack']).toBe(
    'node packed-manifest.mjs whole && npm run --silent build && tsc -p control/client && ' +
      'node packed-manifest.mjs',
  )
  run(process.execPath, ['control/client/build.mjs'])
  run(process.execPath, [compiler, '-p', 'control/client'])
  const { files, bundleDependencies } = manifestOf('.')
  const carried = [...bundleDependencies, ...binaries()].map((name) => `node_modules/${name}`)
  const kept = files.filter((name) => !name.startsWith('!'))
  const copied = join(folder, 'copied')
  for (const name of ['package.json', 'README.md', 'LICENSE', ...kept, ...carried])
    cpSync(name, join(copied, name), { recursive: true })
  run(process.execPath, [resolve('packed-manifest.mjs')], copied)
  run('npm', ['pack', '--ignore-scripts', '--pack-destination', folder], copied)
  const archive = readdirSync(folder).find((name) => name.endsWith('.tgz')) ?? ''
  bytes = statSync(join(folder, archive)).size
  mkdirSync(place)
  const words = ['--offline', '--cache', join(folder, 'cache'), '--registry', 'http://127.0.0.1:9/']
  run('npm', ['install', ...words, join('..', archive)], place)
}, 180_000)

/** `npx tollgate …` in the folder, with ports that are free. */
const startInstalled = (words: readonly string[], environment?: Record<string, string>): Program =>
  startProgram(words, environment, place, join(installed, 'dist/main.js'))

test('npx tollgate is there, and says its version', () => {
  const printed = execFileSync('npx', ['--no-install', 'tollgate', '--version'], { cwd: place })
  expect(printed.toString()).toBe('tollgate 0.1.0\n')
})

test('serve creates its database, signs the first user in, and serves console, reference and document', async () => {
  const program = startInstalled(['serve'])
  const [, password = ''] = /password (\S+)/.exec(await program.line(/^created user admin/)) ?? []
  const [, api = ''] = /api=(\S+)/.exec(await program.line(/^ready /)) ?? []
  const get = async (path: string) => {
    const answer = await fetch(`http://${api}${path}`)
    return `${answer.status} ${(await answer.text()).slice(0, 10)}`
  }
  expect(await get('/readyz')).toMatch(/^200 /)
  expect(await get('/')).toBe('200 <!doctype ')
  expect(await get('/docs/swagger-ui.css')).toMatch(/^200 /)
  expect(await get('/openapi.json')).toBe('200 {"openapi"')
  const signedIn = await fetch(`http://${api}/api/v1/auth/login`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ username: 'admin', password }),
  })
  expect(signedIn.status).toBe(200)
  program.child.kill('SIGTERM')
  expect(await program.ended).toBe(0)
  expect(statSync(join(place, 'data/tollgate.db')).size).toBeGreaterThan(0)
})

const untilStored = (path: string): string =>
  `until sqlite3 ${path} 'SELECT 1 FROM cdr' | grep -q 1; do sleep 0.1; done`

const blocksOf = (document: string, language: string): string[] =>
  [...readFileSync(document, 'utf8').matchAll(/```(\w+)\n([\s\S]*?)\n```/g)]
    .filter(([, found]) => found === language)
    .map(([, , block = '']) => block)
const webhookSecret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const scripts = ['README.md', 'GUIDE.md'].flatMap((document) =>
  blocksOf(document, 'js').filter((block) => block.includes("'tollgate/client'")),
)

test('README and GUIDE: seed, the first billed call, and the programs on the client library', async () => {
  const blockWith = (text: string): string =>
    blocksOf('README.md', 'sh').find((block) => block.includes(text)) ?? ''
  const [seed, calls] = [blockWith('pbx.json'), blockWith('sipp -sn uas')]
  const [sip, node, caller] = [await freePort(), await freePort(), await freePort()]
  const environment = {
    PATH: process.env['PATH'] ?? '',
    DATABASE_PATH: join(place, 'first-call.db'),
    SIP_LISTEN: `udp/127.0.0.1:${sip},tcp/127.0.0.1:${sip}`,
  }
  // `sipp -sd` ends with 99: what ends a pipe counts.
  const shell = (script: string) =>
    execFileSync('bash', ['-eu', '-c', script], {
      cwd: place,
      env: environment,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    })

  shell(seed.replace('npx tollgate serve', '').replaceAll('5070', String(node)))
  const program = startInstalled(['serve'], environment)
  const [, api = ''] = /api=(\S+)/.exec(await program.line(/^ready /)) ?? []
  const [startNode = '', ...placeCall] = calls.split('\n')
  const words = startNode.replace(/#.*/, '').replace('5070', String(node)).trim().split(/\s+/)
  const answering = spawn(words[0] ?? '', words.slice(1), { stdio: 'ignore' })
  onTestFinished(() => void answering.kill('SIGKILL'))
  const printed = shell(
    placeCall
      .join('\n')
      .replaceAll('127.0.0.1:5060', `127.0.0.1:${sip} -p ${caller}`)
      .replaceAll('data/tollgate.db', environment.DATABASE_PATH)
      // Records are stored in groups, a moment after the end.
      .replace('sqlite3', `${untilStored(environment.DATABASE_PATH)}; sqlite3`),
  )
  expect(printed).toMatch(/\|18005551212\|[12]\|ANSWERED\|1\d{4}$/m)
  expect(printed).toMatch(/^debit\|-1\d{4}\|998\d{4}\|/m)

  const key = shell("npx tollgate key create --name all --scopes '*'").trim()
  const run = (script: string, name: string): ChildProcess => {
    const file = join(place, `${name}.mjs`)
    writeFileSync(file, script.replaceAll('127.0.0.1:8080', api))
    const child = spawn(process.execPath, [file], {
      env: { PATH: environment.PATH, TOLLGATE_KEY: key, WEBHOOK_SECRET: webhookSecret },
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    return child
  }
  const outputs: string[] = []
  for (const [at, script] of scripts.filter((text) => !text.includes('verifyWebhook')).entries()) {
    const child = run(script, `example-${at}`)
    let output = ''
    child.stdout?.on('data', (chunk: Buffer) => (output += chunk.toString()))
    child.stderr?.on('data', (chunk: Buffer) => (output += chunk.toString()))
    const [code] = await once(child, 'close')
    expect([code, output]).toEqual([0, output])
    outputs.push(output)
  }
  expect(outputs).toHaveLength(2)
  const [readme = '', guide = ''] = outputs
  expect(readme).toContain('globex 25.00\n')
  expect(readme).toMatch(/^404 not_found \S+$/m)
  expect(guide).toMatch(/0\.02/)
  expect(guide).toMatch(/^400 validation_failed \[/m)

  const receiver = scripts.find((text) => text.includes('verifyWebhook')) ?? ''
  const port = await freePort()
  run(receiver.replace('8090', String(port)), 'receiver')
  const sentAt = new Date()
  const body = JSON.stringify({ type: 'webhook.test', timestamp: sentAt.toISOString(), data: {} })
  const send = (signature: string) =>
    fetch(`http://127.0.0.1:${port}`, {
      method: 'POST',
      body,
      headers: {
        'webhook-id': 'msg_1',
        'webhook-timestamp': String(Math.floor(sentAt.getTime() / 1_000)),
        'webhook-signature': signature,
      },
    }).then(({ status }) => status)
  const signature = new Webhook(webhookSecret).sign('msg_1', sentAt, body)
  expect(await eventually(() => send(signature))).toBe(204)
  expect(await send('v1,AAAA')).toBe(400)
  program.child.kill('SIGTERM')
  expect(await program.ended).toBe(0)
})

test('its types are there for programs of Node.js and for pages, and the examples keep to them', () => {
  const settings = {
    compilerOptions: {
      noEmit: true,
      strict: true,
      exactOptionalPropertyTypes: true,
      module: 'nodenext',
      target: 'es2022',
      allowJs: true,
      checkJs: true,
      typeRoots: [join(process.cwd(), 'node_modules/@types')],
    },
  }
  const check = (name: string, lib: readonly string[], types: readonly string[], files: object) => {
    mkdirSync(join(place, name))
    for (const [file, text] of Object.entries(files))
      writeFileSync(join(place, name, file), String(text))
    const config = { compilerOptions: { ...settings.compilerOptions, lib, types } }
    writeFileSync(join(place, name, 'tsconfig.json'), JSON.stringify(config))
    execFileSync(process.execPath, [compiler, '-p', join(place, name)], { stdio: 'pipe' })
  }
  const use = `import { Tollgate, verifyWebhook, type Customer, type Page } from 'tollgate/client'
const tollgate = new Tollgate({ url: '/', key: 'k' })
export const page: Promise<Page<Customer>> = tollgate.customers.page()
export const name: Promise<string> = tollgate.carriers.get(1).then((carrier) => carrier.name)
// @ts-expect-error: the amount is missing
void tollgate.customers.topUp(1, { reason: 'gift' })
// @ts-expect-error: there is no such field
void tollgate.customers.create({ name: 'a', nmae: 'b' })
// @ts-expect-error: there is no such operation
void tollgate.request('createNothing', {})
export const event = verifyWebhook({ body: '', headers: new Headers(), secret: 's' })
`
  const env = scripts.map((script) =>
    script.replaceAll(/process\.env\.(\w+)/g, "(process.env.$1 ?? '')"),
  )
  check(
    'node',
    ['es2023'],
    ['node'],
    Object.fromEntries(env.map((text, at) => [`${at}.mts`, text])),
  )
  // The types of drachtio-srf are not part of the package.
  const hooks = readdirSync('examples/hooks').filter((name) => name !== 'announcement.ts')
  const texts = hooks.map((name) => readFileSync(join('examples/hooks', name), 'utf8'))
  check(
    'examples',
    ['es2023'],
    ['node'],
    Object.fromEntries(texts.map((text, at) => [`${at}.mts`, text])),
  )
  check('page', ['es2022', 'dom', 'dom.iterable'], [], { 'use.mts': use })
})

test('GUIDE: a hook is tested by its types and by Vitest, in a folder with the package alone', () => {
  const [, section = ''] = readFileSync('GUIDE.md', 'utf8').split(
    '\n## Ask your code about every call\n',
  )
  const [hooks = '', tests = ''] = [...section.matchAll(/```ts\n([\s\S]*?)```/g)].map(
    ([, block = '']) => block,
  )
  const at = join(place, 'hooks')
  const config = {
    compilerOptions: {
      noEmit: true,
      strict: true,
      module: 'nodenext',
      target: 'es2023',
      types: [],
      skipLibCheck: true,
      allowImportingTsExtensions: true,
    },
  }
  const files = { 'hooks.ts': hooks, 'hooks.test.ts': tests, 'package.json': '{"type":"module"}' }
  mkdirSync(at)
  for (const [name, text] of Object.entries(files)) writeFileSync(join(at, name), text)
  writeFileSync(join(at, 'tsconfig.json'), JSON.stringify(config))
  symlinkSync(resolve('node_modules/vitest'), join(place, 'node_modules/vitest'))
  execFileSync(process.execPath, [compiler, '-p', at], { stdio: 'pipe' })
  const vitest = [join(place, 'node_modules/vitest/vitest.mjs'), 'run', '--root', at]
  const printed = execFileSync(process.execPath, vitest, {
    encoding: 'utf8',
    env: { NO_COLOR: '1' },
  })
  expect(printed).toMatch(/Tests {2}2 passed/)
})

test('it holds what it needs, and no sources, tests or maps', () => {
  expect(readdirSync(installed).toSorted()).toEqual(
    [
      'CHANGELOG.md',
      'GUIDE.md',
      'LICENSE',
      'README.md',
      'dist',
      'examples',
      'node_modules',
      'package.json',
    ].toSorted(),
  )
  const files = readdirSync(join(installed, 'dist'), { recursive: true }).map(String)
  expect(files.filter((name) => /\.map$|(?<!\.d)\.ts$|\.test\./.test(name))).toEqual([])
  const packages = readdirSync(join(installed, 'node_modules'), { recursive: true }).map(String)
  expect(packages.filter((name) => name.endsWith('package.json')).toSorted()).toEqual([
    '@node-rs/argon2-linux-x64-gnu/package.json',
    '@node-rs/argon2/package.json',
  ])
  for (const target of Object.values(manifestOf(installed).exports).flatMap((each) =>
    typeof each === 'string' ? [each] : Object.values(each),
  ))
    expect(statSync(join(installed, target)).isFile()).toBe(true)
  expect(bytes).toBeLessThan(13_000_000)
})

test('its metadata let npm publish it with provenance, and other systems get their binaries', () => {
  const manifest = manifestOf(installed)
  expect(manifest).not.toHaveProperty('private')
  expect(manifest).not.toHaveProperty('devDependencies')
  // They are run by who packs, never by who installs.
  expect(Object.keys(manifest.scripts)).toEqual(['prepack', 'postpack'])
  expect(Object.keys(manifest.dependencies)).toEqual(manifest.bundleDependencies)
  expect(manifest).toMatchObject({
    publishConfig: { access: 'public', provenance: true },
    repository: { type: 'git', url: expect.stringMatching(/^git\+https:.*\.git$/) as string },
    engines: { node: '>=22.14' },
  })
  // npm does not complete what is bundled: the binaries of other systems are named beside it, in
  // the same version.
  const { optionalDependencies } = manifestOf(join(installed, 'node_modules/@node-rs/argon2'))
  for (const [name, version] of Object.entries(manifest.optionalDependencies))
    expect(optionalDependencies[name]).toBe(version)
  const systems = readdirSync(join(installed, 'dist/prebuilds'))
  expect(systems).toHaveLength(Object.keys(manifest.optionalDependencies).length)
})
