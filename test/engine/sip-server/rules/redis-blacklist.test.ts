/** The blacklist in Redis: with the client, against a server that knows a few commands, and against a real one. */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { thisMachine } from '../../../../engine/sip-server/machine.ts'
import {
  loadRedis,
  watchRedisBlacklist,
  type RedisSet,
} from '../../../../engine/sip-server/rules/redis-blacklist.ts'
import { fakeRedis } from '../../../support/fake-redis.ts'
import { freePort } from '../../../support/free-port.ts'
import { temporaryFolder } from '../../../support/temporary-folder.ts'
import { emitted } from '../../../support/waiting.ts'

const local = (port: number) => ({ host: '127.0.0.1', port })

async function watch(set: Partial<RedisSet>, schedule = thisMachine.schedule) {
  const lines: string[] = []
  const list = watchRedisBlacklist(
    {
      places: [],
      master: undefined,
      key: 'denied',
      password: undefined,
      refreshSeconds: 300,
      ...set,
    },
    await loadRedis(),
    (level, message, fields) =>
      lines.push(`${level} ${message} ${JSON.stringify(fields?.['reason'])}`),
    schedule,
  )
  onTestFinished(() => list.stop())
  return { list, lines }
}

async function read(lines: readonly string[]): Promise<void> {
  await expect.poll(() => lines.join()).toContain('the blacklist was read')
}

test('the members of the set are denied, with the password of the server', async () => {
  const redis = await fakeRedis(() => ['192.0.2.1', '10.0.0.0/8', 'nonsense'])
  const { list, lines } = await watch({ places: [local(redis.port)], password: 'pass' })
  await read(lines)
  expect(['192.0.2.1', '10.1.2.3', '192.0.2.2'].map((address) => list.denies(address))).toEqual([
    true,
    true,
    false,
  ])
  expect(lines[0]).toContain('warn lines of the blacklist are no addresses')
  expect(redis.asked.some((command) => command.startsWith('AUTH default pass'))).toBe(true)
  expect(redis.asked.at(-1)).toBe('SMEMBERS denied')
})

test('it is read again and again, and at once when that is wanted', async () => {
  let members = ['192.0.2.1']
  const redis = await fakeRedis(() => members)
  const { list } = await watch({ places: [local(redis.port)], refreshSeconds: 1 })
  await expect.poll(() => list.denies('192.0.2.1')).toBe(true)
  members = ['192.0.2.2']
  await expect.poll(() => list.denies('192.0.2.2')).toBe(true)
  expect(list.denies('192.0.2.1')).toBe(false)
  members = ['192.0.2.3']
  list.refresh()
  await expect.poll(() => list.denies('192.0.2.3')).toBe(true)
})

test('a server that is gone, or says no, changes nothing, and is told', async () => {
  let refuses = false
  const redis = await fakeRedis(() => (refuses ? new Error('WRONGTYPE of key') : ['192.0.2.1']))
  const { list, lines } = await watch({ places: [local(redis.port)] })
  await read(lines)
  refuses = true
  list.refresh()
  await expect
    .poll(() => lines.join())
    .toContain('error the blacklist in Redis cannot be read "ERR')
  expect(list.denies('192.0.2.1')).toBe(true)
  const absent = await watch({ places: [local(1)] })
  await expect.poll(() => absent.lines.join()).toContain('cannot be read "ECONNREFUSED')
  expect(absent.list.denies('192.0.2.1')).toBe(false)
})

test('sentinels know the replicas: the first of each that answers counts', async () => {
  const redis = await fakeRedis(() => ['192.0.2.1'])
  const replica = (port: number) => [
    'name',
    'r',
    'ip',
    '127.0.0.1',
    'port',
    String(port),
    'flags',
    's',
  ]
  const sentinel = await fakeRedis(([, word]) =>
    word === 'REPLICAS' ? [replica(1), replica(redis.port)] : [],
  )
  const places = [local(1), local(sentinel.port)]
  const { list, lines } = await watch({ places, master: 'main', password: 'p' })
  await read(lines)
  expect(list.denies('192.0.2.1')).toBe(true)
  expect(sentinel.asked).toEqual(['SENTINEL REPLICAS main'])
})

test('a sentinel without replicas names the master', async () => {
  const redis = await fakeRedis(() => ['192.0.2.1'])
  const sentinel = await fakeRedis(([, word]) =>
    word === 'REPLICAS' ? [] : ['127.0.0.1', String(redis.port)],
  )
  const { lines } = await watch({ places: [local(sentinel.port)], master: 'main' })
  await read(lines)
  expect(sentinel.asked.at(-1)).toBe('SENTINEL GET-MASTER-ADDR-BY-NAME main')
})

/** Takes connections, and never answers. */
async function silentServer(): Promise<number> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => sockets.add(socket.on('error', () => undefined).resume()))
  server.listen(0, '127.0.0.1')
  await emitted(server, 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

test('a sentinel that takes connections but never answers does not end the readings', async () => {
  const redis = await fakeRedis(() => ['192.0.2.1'])
  const sentinel = await fakeRedis(([, word]) =>
    word === 'REPLICAS' ? [] : ['127.0.0.1', String(redis.port)],
  )
  const places = [local(await silentServer()), local(sentinel.port)]
  let scheduled = 0
  // Only for the first server time is over at once.
  const { list, lines } = await watch({ places, master: 'main' }, (work, delayMs) => {
    scheduled += 1
    return thisMachine.schedule(work, scheduled === 1 ? 0 : delayMs)
  })
  await read(lines)
  expect(list.denies('192.0.2.1')).toBe(true)
})

test('a server that never answers is told, and asked again later', async () => {
  const delays: number[] = []
  const places = [local(await silentServer())]
  const { lines } = await watch({ places }, (work, delayMs) => {
    delays.push(delayMs)
    return delays.length === 1 ? thisMachine.schedule(work, 0) : () => undefined
  })
  await expect.poll(() => delays).toEqual([10_000, 60_000])
  expect(lines).toEqual(['error the blacklist in Redis cannot be read "no answer in time"'])
})

test('a client that never settles does not end the readings either', async () => {
  const works: (() => void)[] = []
  const lines: string[] = []
  const set = { places: [local(1)], master: undefined, key: 'denied', password: undefined }
  const list = watchRedisBlacklist(
    { ...set, refreshSeconds: 300 },
    () => new Promise(() => undefined),
    (_level, message) => lines.push(message),
    (work) => {
      works.push(work)
      return () => undefined
    },
  )
  onTestFinished(() => list.stop())
  works[0]?.()
  await expect.poll(() => works.length).toBe(2)
  expect(lines).toEqual(['the blacklist in Redis cannot be read'])
})

const hasServer = spawnSync('redis-server', ['--version']).status === 0

test.runIf(hasServer)('a real server', async () => {
  const port = await freePort()
  const words = [
    '--port',
    String(port),
    '--bind',
    '127.0.0.1',
    '--save',
    '',
    '--requirepass',
    'pass',
  ]
  const server = spawn('redis-server', words, { cwd: temporaryFolder(), stdio: 'ignore' })
  onTestFinished(() => void server.kill())
  const command = (...rest: string[]): string =>
    execFileSync('redis-cli', ['-p', String(port), '-a', 'pass', ...rest], {
      stdio: 'pipe',
    }).toString()
  await expect.poll(() => spawnSync('redis-cli', ['-p', String(port), 'PING']).status).toBe(0)
  command('SADD', 'denied', '192.0.2.1', '2001:db8::1')
  const { list, lines } = await watch({ places: [local(port)], password: 'pass' })
  await read(lines)
  expect([list.denies('192.0.2.1'), list.denies('2001:db8::1')]).toEqual([true, true])
  const wrong = await watch({ places: [local(port)], password: 'other' })
  await expect.poll(() => wrong.lines.join()).toContain('WRONGPASS')
})
