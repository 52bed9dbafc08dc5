/** The commands of Dockerfile and compose.yaml, run without a container. */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync, symlinkSync } from 'node:fs'
import { cp } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import { wordsOf } from '../support/container-files.ts'
import { freePort } from '../support/free-port.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { eventually } from '../support/waiting.ts'
import { startProgram } from './program.ts'

const folder = temporaryFolder()

/** The exit code of HEALTHCHECK in a container with these settings. */
function healthOf(environment: Record<string, string>): number | null {
  const [, ...words] = wordsOf('HEALTHCHECK')
  return spawnSync(process.execPath, words, { env: environment }).status
}

test('its entry point serves, and its health is what /readyz says, wherever the API listens', async () => {
  const [node, main, ...words] = [...wordsOf('ENTRYPOINT'), ...wordsOf('CMD')]
  expect([node, main, words]).toEqual(['node', 'dist/main.js', ['serve']])
  const environment = { API_LISTEN: `[::]:${await freePort()}` }
  expect(healthOf(environment)).toBe(1)
  const program = startProgram(words, { ...environment, DATABASE_PATH: join(folder, 't.db') })
  await program.line(/^ready /)
  expect(healthOf(environment)).toBe(0)
  program.child.kill('SIGTERM')
  expect(await program.ended).toBe(0)
  expect(wordsOf('HEALTHCHECK').at(-1)).toContain("||'127.0.0.1:8080'")
})

test('what .dockerignore lets through is enough to build', async () => {
  const place = join(folder, 'context')
  const [all, ...kept] = readFileSync('.dockerignore', 'utf8').trim().split('\n')
  expect(all).toBe('*')
  for (const line of kept) {
    const name = line.replace('!', '')
    await cp(name, join(place, name), { recursive: true })
  }
  symlinkSync(resolve('node_modules'), join(place, 'node_modules'))
  execFileSync(process.execPath, ['build.mjs'], { cwd: place, stdio: 'pipe' })
  const printed = execFileSync(process.execPath, ['dist/main.js', '--version'], { cwd: place })
  expect(printed.toString()).toMatch(/^tollgate \d/)
})

const { services } = parse(readFileSync('compose.yaml', 'utf8')) as {
  readonly services: {
    readonly rtpengine: {
      readonly command: readonly string[]
      readonly healthcheck: { readonly test: readonly string[] }
    }
  }
}

test.runIf(existsSync('/usr/bin/rtpengine'))(
  'rtpengine of compose starts, and its health check finds it',
  async () => {
    const port = String(await freePort())
    const { command, healthcheck } = services.rtpengine
    const words = command.map((word) =>
      word.replace('${RTP_ADDRESS:-127.0.0.1}', '127.0.0.1').replace('22222', port),
    )
    const [, program = '', ...check] = healthcheck.test.map((word) => word.replace('22222', port))
    const isHealthy = () => spawnSync(program, check, { stdio: 'ignore' }).status === 0
    expect(isHealthy()).toBe(false)
    const relay = spawn('rtpengine', words, { stdio: 'ignore' })
    onTestFinished(() => void relay.kill('SIGKILL'))
    await eventually(() => expect(isHealthy()).toBe(true))
  },
)
