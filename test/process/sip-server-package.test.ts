/**
 * The package as it would be published: installed alone, without a network, it serves an unmodified
 * drachtio-srf application.
 */
import { execFileSync, spawn } from 'node:child_process'
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { Authority, loopbackNames } from '../support/certificates.ts'
import { freePort } from '../support/free-port.ts'
import { SipPeer, sdp } from '../support/sip-peer.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { Signal } from '../support/waiting.ts'

const folder = temporaryFolder()
const source = 'engine/sip-server'

beforeAll(() => {
  const pack = (path: string): void =>
    void execFileSync('npm', ['pack', '--pack-destination', folder], { cwd: path, stdio: 'pipe' })
  for (const path of [source, ...['ws', 'sax', 'sip-status'].map((name) => `node_modules/${name}`)])
    pack(path)
  const archives = readdirSync(folder).map((name) => `./${name}`)
  writeFileSync(join(folder, 'package.json'), '{"private": true, "type": "module"}')
  execFileSync('npm', ['install', '--offline', '--no-audit', '--no-fund', ...archives], {
    cwd: folder,
    stdio: 'pipe',
  })
}, 180_000)

function startNode(words: readonly string[], cwd = folder) {
  const child = spawn(process.execPath, words, { cwd, stdio: ['ignore', 'pipe', 'inherit'] })
  const said: string[] = []
  const spoke = new Signal()
  createInterface({ input: child.stdout }).on('line', (line) => {
    said.push(line)
    spoke.fire()
  })
  onTestFinished(() => void child.kill())
  return {
    said,
    line: (start: string) => spoke.until(() => said.some((each) => each.startsWith(start))),
  }
}

async function openPeer(port: number): Promise<SipPeer> {
  const peer = await SipPeer.open({
    protocol: 'udp',
    address: '127.0.0.1',
    port,
    advertisedHost: '127.0.0.1',
    advertisedPort: port,
  })
  onTestFinished(() => peer.close())
  return peer
}

async function expectCall(port: number): Promise<void> {
  const caller = await openPeer(port)
  const leg = caller.leg(`sip:any@127.0.0.1:${port}`)
  caller.request('INVITE', leg, { body: sdp('mine') })
  const answer = await caller.next('200 INVITE')
  expect(answer.body).toBe(sdp('mine'))
  caller.learn(leg, answer)
  caller.request('ACK', leg)
  caller.reply(await caller.next('BYE'), 200)
}

const announce = (admin: number) =>
  startNode(
    [`${source}/example/announcement.mjs`, '127.0.0.1', String(admin), 'cymru', '0.1'],
    process.cwd(),
  )

const readme = readFileSync(join(source, 'README.md'), 'utf8')
const examples = [...readme.matchAll(/```ts\n([^`]*import [^`]*)```/g)].map(([, text = '']) => text)

/** An example of the README, on ports that are free. */
async function runExample(at: number) {
  const ports: number[] = []
  let text = (examples[at] ?? '').replaceAll('0.0.0.0', '127.0.0.1')
  for (const [spelled] of text.matchAll(/port: \d+/g)) {
    ports.push(await freePort())
    text = text.replace(spelled, `port: ${ports.at(-1)}`)
  }
  const file = join(folder, `example-${at}.ts`)
  writeFileSync(file, `${text}\nconsole.log('started')`)
  const runner = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href
  const program = startNode(['--import', runner, file])
  await program.line('started')
  return { ...program, ports }
}

test('the three lines of the README serve an application', async () => {
  const [sip = 0, admin = 0] = (await runExample(0)).ports
  await announce(admin).line('taking calls')
  await expectCall(sip)
})

test('the long example of the README does what it says', async () => {
  const { certFile, keyFile } = new Authority(folder).sign('server', ...loopbackNames)
  copyFileSync(certFile, join(folder, 'fullchain.pem'))
  copyFileSync(keyFile, join(folder, 'privkey.pem'))
  const { ports, said } = await runExample(1)
  const [sip = 0, , , , admin = 0, metrics] = ports
  expect(said.filter((line) => line !== 'started')).toEqual(
    ['udp', 'tcp', 'tls', 'wss'].map((protocol, at) => `${protocol} 127.0.0.1 ${ports[at]}`),
  )
  await announce(admin).line('taking calls')
  await expectCall(sip)
  const scanner = await openPeer(sip)
  const headers = ['User-Agent: friendly-scanner']
  scanner.request('OPTIONS', scanner.leg(`sip:any@127.0.0.1:${sip}`), { headers })
  await scanner.next(603)
  expect(await (await fetch(`http://127.0.0.1:${metrics}/metrics`)).text()).toContain('drachtio_')
})

test('its types are those of the library, and its examples keep to them', () => {
  const names = readdirSync(
    join(folder, 'node_modules/tollgate-sip-server/dist/types/engine/sip-server'),
  )
  expect(names).toContain('index.d.ts')
  writeFileSync(
    join(folder, 'use.ts'),
    `import { createSipServer, type NewRequest, type SipServer } from 'tollgate-sip-server'
export const server: SipServer = createSipServer({
  secret: 's',
  listen: [{ protocol: 'udp', host: '127.0.0.1', port: 0 }],
  routeRequest: ({ method }: NewRequest) => (method === 'INVITE' ? { tag: 'a' } : undefined),
})
export const wrong: number = server.refusedCalls
`,
  )
  for (const [at, text] of examples.entries())
    writeFileSync(join(folder, `typed-${at}.ts`), `${text}\nexport {}`)
  const files = ['use.ts', ...examples.map((_text, at) => `typed-${at}.ts`)]
  const compiler = join(process.cwd(), 'node_modules/typescript/bin/tsc')
  const types = join(process.cwd(), 'node_modules/@types')
  const words = ['--noEmit', '--strict', '--module', 'nodenext', '--types', 'node', '--typeRoots']
  execFileSync(process.execPath, [compiler, ...words, types, ...files], {
    cwd: folder,
    stdio: 'pipe',
  })
})

test('it holds what it needs, and no tests', () => {
  const inside = join(folder, 'node_modules/tollgate-sip-server')
  expect(readdirSync(inside).toSorted()).toEqual([
    'CHANGELOG.md',
    'LICENSE',
    'MIGRATION.md',
    'README.md',
    'dist',
    'example',
    'package.json',
  ])
  const { dependencies } = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8')) as {
    readonly dependencies: Readonly<Record<string, string>>
  }
  const own = JSON.parse(readFileSync('package.json', 'utf8')) as {
    readonly dependencies: Readonly<Record<string, string>>
  }
  for (const [name, range] of Object.entries(dependencies))
    expect(own.dependencies[name]).toBe(range)
})
