/** Dockerfile and compose.yaml, read as Docker reads them: there is no Docker where the tests run. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { imageLines, lastInstruction } from './support/container-files.ts'

const lines = imageLines()
const position = (instruction: string): number =>
  lines.findLastIndex((line) => line.startsWith(`${instruction} `))

test('the image is built from the lock file, and what only the build needs stays behind', () => {
  expect(lines).toContain('RUN npm ci')
  expect(lines.filter((line) => line.startsWith('FROM '))).toHaveLength(2)
  expect(lastInstruction('FROM')).toMatch(/-slim$/)
  expect(lines.slice(position('FROM')).filter((line) => line.startsWith('COPY '))).toSatisfy(
    (copies: string[]) => copies.every((copy) => copy.startsWith('COPY --from=build ')),
  )
})

test('images are named with exact versions, that of Node is the one that the tests run on', () => {
  const { devDependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as {
    readonly devDependencies: Readonly<Record<string, string>>
  }
  const bases = lines.filter((line) => line.startsWith('FROM '))
  for (const base of bases) expect(base).toContain(`FROM node:${devDependencies['node']}-bookworm`)
  expect(services.postgres.image).toMatch(/^postgres:\d+\.\d+-bookworm$/)
  expect(services.rtpengine.build).toMatchObject({
    dockerfile_inline: expect.stringMatching(/^FROM debian:\d+\.\d+-slim\n/) as string,
  })
})

test('the process does not run as root, and may write where the data are', () => {
  expect(lastInstruction('USER')).toBe('USER node')
  expect(position('USER')).toBeGreaterThan(position('RUN'))
  expect(lastInstruction('RUN')).toContain('chown node:node /data')
  expect(lastInstruction('VOLUME')).toBe('VOLUME /data')
  expect(lastInstruction('ENV')).toContain('DATABASE_PATH=/data/tollgate.db')
})

test('the API listens on loopback unless the operator says otherwise', () => {
  expect(lastInstruction('ENV')).not.toContain('LISTEN')
  expect(lastInstruction('EXPOSE')).toBe('EXPOSE 5060/udp 5060/tcp')
  expect(readFileSync('compose.yaml', 'utf8')).not.toContain('API_LISTEN')
})

test('the signal to stop reaches the process itself', () => {
  expect(lastInstruction('STOPSIGNAL')).toBe('STOPSIGNAL SIGTERM')
  expect(lastInstruction('ENTRYPOINT')).toMatch(/^ENTRYPOINT \["node", .*"dist\/main\.js"\]$/)
})

interface Service {
  readonly image: string
  readonly build?: unknown
  readonly profiles?: readonly string[]
  readonly network_mode?: string
  readonly environment?: Readonly<Record<string, string>>
  readonly env_file?: readonly { readonly path: string; readonly required: boolean }[]
  readonly volumes?: readonly string[]
  readonly ports?: readonly string[]
  readonly healthcheck?: object
  readonly depends_on?: Readonly<Record<string, { readonly required: boolean }>>
}

const { services, volumes } = parse(readFileSync('compose.yaml', 'utf8')) as {
  readonly services: Readonly<Record<'tollgate' | 'rtpengine' | 'postgres', Service>>
  readonly volumes: Readonly<Record<string, unknown>>
}

test('compose starts Tollgate alone; rtpengine and PostgreSQL are options', () => {
  expect(Object.keys(services)).toEqual(['tollgate', 'rtpengine', 'postgres'])
  expect(services.tollgate.profiles).toBeUndefined()
  expect(services.rtpengine.profiles).toEqual(['media'])
  expect(services.postgres.profiles).toEqual(['postgres'])
  for (const { required } of Object.values(services.tollgate.depends_on ?? {}))
    expect(required).toBe(false)
})

test('what carries SIP and RTP is on the network of the host, and the database is reached from the host alone', () => {
  expect(services.tollgate.network_mode).toBe('host')
  expect(services.rtpengine.network_mode).toBe('host')
  expect(services.postgres.ports).toEqual(['127.0.0.1:5432:5432'])
})

test('secrets are in files that neither git nor the image has, and all data on volumes', () => {
  const files = Object.values(services).flatMap(({ env_file: given = [] }) => given)
  expect(files.map(({ path }) => path)).toEqual(['tollgate.env', 'postgres.env'])
  expect(readFileSync('.gitignore', 'utf8').split('\n')).toContain('*.env')
  expect(readFileSync('.dockerignore', 'utf8')).toMatch(/^\*\n/)
  for (const { environment = {} } of Object.values(services))
    expect(Object.keys(environment).filter((name) => /PASSWORD|SECRET|TOKEN/.test(name))).toEqual(
      [],
    )
  const mounted = [services.tollgate, services.postgres].flatMap(({ volumes: each = [] }) => each)
  expect(mounted.map((mount) => mount.split(':')[0])).toEqual(Object.keys(volumes))
  expect(mounted).toContain('data:/data')
})

test('each service says how it is', () => {
  expect(lastInstruction('HEALTHCHECK')).toContain('/readyz')
  expect(services.rtpengine.healthcheck).toBeDefined()
  expect(services.postgres.healthcheck).toMatchObject({
    test: expect.arrayContaining(['pg_isready']) as string[],
  })
})
