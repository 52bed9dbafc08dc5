/** The manifest is true, and tools that read it see what runs. */
import { execFile, execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { buffer } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { codeOf } from './support/source-files.ts'

const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as {
  readonly dependencies: Readonly<Record<string, string>>
  readonly devDependencies: Readonly<Record<string, string>>
}
const nameOf = (specifier: string): string =>
  /^(?:@[^/]+\/)?[^/]+/.exec(specifier)?.[0] ?? specifier

/** The packages that the sources of the product import; its build scripts are not among them. */
const imported = new Set(
  [...codeOf]
    .filter(([path]) => !path.endsWith('.mjs'))
    .flatMap(([, code]) => [...code.matchAll(/(?:\bfrom\s+|\bimport\s*\(?\s*)'([@a-z][^':]*)'/g)])
    .map(([, specifier = '']) => nameOf(specifier)),
)
/** Named to find the version of Node that npm has installed: not a part of what runs. */
imported.delete('node')
/** Served as files. */
const served = ['swagger-ui-dist']

test('what runs is a dependency, and what only builds and tests is not', () => {
  expect(Object.keys(manifest.dependencies).toSorted()).toEqual([...imported, ...served].toSorted())
})

/** npm 11 omits what a package of devDependencies needs as well: knip needs zod. */
const sharedWithTools = ['zod']

test('npm sbom names what runs, and nothing of what builds and tests', () => {
  const words = ['sbom', '--omit=dev', '--sbom-format=cyclonedx', '--package-lock-only']
  const { components } = JSON.parse(execFileSync('npm', words, { encoding: 'utf8' })) as {
    readonly components: readonly { readonly name: string }[]
  }
  const names = components.map(({ name }) => name)
  const direct = Object.keys(manifest.dependencies)
  expect([...names, ...sharedWithTools]).toEqual(expect.arrayContaining(direct))
  expect(names.filter((name) => name in manifest.devDependencies)).toEqual([])
})

test('the lock file names no registry', () => {
  expect(readFileSync('package-lock.json', 'utf8')).not.toContain('"resolved"')
})

/** A registry that knows a critical fault of these packages. */
async function registryWith(faulty: readonly string[]): Promise<string> {
  const fault = { id: 1, title: 'a hole', severity: 'critical', vulnerable_versions: '*', url: '' }
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await buffer(request)
    if (request.method !== 'POST') return void response.writeHead(404).end('{}')
    const packed = request.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body
    const asked = Object.keys(JSON.parse(packed.toString()) as object)
    const known = asked.filter((name) => faulty.includes(name)).map((name) => [name, [fault]])
    response.writeHead(200, { 'Content-Type': 'application/json' })
    response.end(JSON.stringify(Object.fromEntries(known)))
  }
  const server = createServer((request, response) => void answer(request, response))
  onTestFinished(() => void server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

function audit(registry: string): Promise<{ isRed: boolean; lines: readonly string[] }> {
  const env = { ...process.env, npm_config_registry: registry }
  return new Promise((resolve) => {
    execFile('bash', ['.ci/audit'], { env }, (error, stdout) =>
      resolve({ isRed: error !== null, lines: stdout.trim().split('\n') }),
    )
  })
}

test('a critical fault of what runs is red, one of what tests is told, and no registry is no fault', async () => {
  const runs = await audit(await registryWith(['hono']))
  expect(runs).toMatchObject({ isRed: true })
  expect(runs.lines).toContain('"title": "a hole"')
  const tests = await audit(await registryWith(['fast-check']))
  expect(tests).toMatchObject({ isRed: false })
  expect(tests.lines.at(-1)).toBe('audit of what runs: nothing high or critical')
  expect(tests.lines).toContain('"title": "a hole"')
  expect(await audit('http://127.0.0.1:9/')).toEqual({
    isRed: false,
    lines: ['what builds and tests', 'what runs'].map(
      (what) => `audit of ${what}: no registry answered`,
    ),
  })
})
