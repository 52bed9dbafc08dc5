/**
 * Dockerfile and compose.yaml, read as Docker reads them: there is no Docker where the tests run.
 */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { imageLines, lastInstruction } from './support/container-files.ts'

const lines = imageLines()
const position = (instruction: string): number =>
  lines.findLastIndex((line) => line.startsWith(`${instruction} `))

test('the image is built from the lock file on the Node that the tests run on, without what only the build needs', () => {
  const { devDependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as {
    readonly devDependencies: Readonly<Record<string, string>>
  }
  expect(lines).toContain('RUN npm ci --ignore-scripts')
  const bases = lines.filter((line) => line.startsWith('FROM '))
  expect(bases).toHaveLength(2)
  for (const base of bases) expect(base).toContain(`FROM node:${devDependencies['node']}-bookworm`)
  const copies = lines.slice(position('FROM')).filter((line) => line.startsWith('COPY '))
  expect(copies.filter((copy) => !copy.startsWith('COPY --from=build '))).toEqual([])
})

test('the process is not root, writes where the data are, gets the signal to stop, and keeps its API on loopback', () => {
  expect(lastInstruction('USER')).toBe('USER node')
  expect(position('USER')).toBeGreaterThan(position('RUN'))
  expect(lastInstruction('RUN')).toContain('chown node:node /data')
  expect(lastInstruction('VOLUME')).toBe('VOLUME /data')
  expect(lastInstruction('ENV')).toContain('DATABASE_PATH=/data/tollgate.db')
  expect(lastInstruction('ENV')).not.toContain('LISTEN')
  expect(lastInstruction('EXPOSE')).toBe('EXPOSE 5060/udp 5060/tcp')
  expect(lastInstruction('STOPSIGNAL')).toBe('STOPSIGNAL SIGTERM')
  expect(lastInstruction('ENTRYPOINT')).toMatch(/^ENTRYPOINT \["node", .*"dist\/main\.js"\]$/)
  expect(lastInstruction('HEALTHCHECK')).toContain('/readyz')
})

interface Service {
  readonly image?: string
  readonly profiles?: readonly string[]
  readonly network_mode?: string
  readonly environment?: Readonly<Record<string, string>>
  readonly env_file?: readonly { readonly path: string; readonly required: boolean }[]
  readonly volumes?: readonly string[]
  readonly ports?: readonly string[]
}

const compose = readFileSync('compose.yaml', 'utf8')
const { services, volumes } = parse(compose) as {
  readonly services: Readonly<Record<'tollgate' | 'rtpengine' | 'postgres', Service>>
  readonly volumes: Readonly<Record<string, unknown>>
}

test('compose starts Tollgate alone on the network of the host; the database is reached from the host alone', () => {
  expect(services).toMatchObject({
    rtpengine: { profiles: ['media'], network_mode: 'host' },
    postgres: { profiles: ['postgres'], ports: ['127.0.0.1:5432:5432'] },
    tollgate: { network_mode: 'host' },
  })
  expect(services.tollgate.profiles).toBeUndefined()
  expect(services.postgres.image).toMatch(/^postgres:\d+\.\d+-bookworm$/)
  expect(compose).not.toContain('API_LISTEN')
})

test('secrets are in files that neither git nor the image has, and all data on volumes', () => {
  const files = Object.values(services).flatMap(({ env_file: given = [] }) => given)
  expect(files.map(({ path }) => path)).toEqual(['tollgate.env', 'postgres.env'])
  expect(readFileSync('.gitignore', 'utf8').split('\n')).toContain('*.env')
  expect(readFileSync('.dockerignore', 'utf8')).toMatch(/^\*\n/)
  const names = Object.values(services).flatMap(({ environment = {} }) => Object.keys(environment))
  expect(names.filter((name) => /PASSWORD|SECRET|TOKEN/.test(name))).toEqual([])
  const mounted = [services.tollgate, services.postgres].flatMap(({ volumes: each = [] }) => each)
  expect(mounted.map((mount) => mount.split(':')[0])).toEqual(Object.keys(volumes))
})
