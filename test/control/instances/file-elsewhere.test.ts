import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { execute } from '../../../schema/sql/query.ts'
import { openControl, startOfTime } from '../../support/control.ts'
import { joinInstances, type JoinedInstance } from '../../support/joined-nodes.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { Readable } from 'node:stream'
import { streamedBody } from '../../../control/instances/peer-answers.ts'
import { ManualTime } from '../../support/manual-time.ts'
import { eventually } from '../../support/waiting.ts'

const uuid = '019ab0c4-1e7f-7a37-9d1f-0f6a5f5e9c11'

const path = `/api/v1/calls/${uuid}/recording`

const audio = Buffer.from(Array.from({ length: 1_000 }, (_, at) => (at * 7) % 251))

const sha256 = createHash('sha256').update(audio).digest('hex')

const turn = (): Promise<void> => new Promise((resolve) => void setTimeout(resolve, 2))

const ignored = (): void => undefined

/** Three instances; the disk of `c` has the recording of a call. */
async function three() {
  const root = temporaryFolder()
  const control = await openControl()
  const joined = await joinInstances(['a', 'b', 'c'], {
    control,
    depsOf: (name) => {
      mkdirSync(join(root, name), { recursive: true })
      return { settings: { ...control.deps.settings, recordingsPath: join(root, name) } }
    },
  })
  const [a, b, c] = joined.instances as [JoinedInstance, JoinedInstance, JoinedInstance]
  const file = join(root, 'c', `${uuid}.wav`)
  writeFileSync(file, audio)
  const { store } = control
  const add = async (call_uuid: string, bytes: number): Promise<void> => {
    const row = { call_uuid, tenant_id: null, started_at: startOfTime, duration_ms: 1_300 }
    const query = store.db.insertInto('recording').values({ ...row, bytes, sha256 })
    await execute(store, query)
  }
  await add(uuid, audio.length)
  const token = await control.key()
  const get = async (instance: JoinedInstance, headers: Record<string, string> = {}) => {
    const all = { authorization: `Bearer ${token}`, ...headers }
    const response = await instance.app.request(path, { headers: all })
    return { response, bytes: Buffer.from(await response.arrayBuffer()) }
  }
  const heard = async () => {
    const log = await control.request('/audit', { token })
    return log
      .data<readonly { action: string; status: number }[]>()
      .map(({ action, status }) => `${action.split(' ')[0]} ${status}`)
  }
  return { ...joined, a, b, c, root, file, token, get, heard, add }
}

test('a recording is heard at every instance, whole and in parts, and each hearing is audited once', async () => {
  const { instances, a, get, heard } = await three()
  for (const instance of instances) {
    const { response, bytes } = await get(instance)
    expect(response.status).toBe(200)
    expect(bytes.equals(audio)).toBe(true)
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'audio/wav',
      'content-length': '1000',
      etag: `"${sha256}"`,
    })
  }
  const part = await get(a, { range: 'bytes=990-' })
  expect([part.response.status, part.response.headers.get('content-range')]).toEqual([
    206,
    'bytes 990-999/1000',
  ])
  expect(part.bytes.equals(audio.subarray(990))).toBe(true)
  expect(await heard()).toEqual(['GET 206', 'GET 200', 'GET 200', 'GET 200'])
})

test('while the instance with the file does not answer the response is 503 and names it; a file that is gone is 404', async () => {
  const { a, b, c, file, get, after } = await three()
  c.link = 'silent'
  const { response, bytes } = (await after(get(a))).answer
  expect([response.status, response.headers.get('x-unreachable-nodes')]).toEqual([503, 'c'])
  expect(JSON.parse(bytes.toString())).toMatchObject({ code: 'node_unreachable' })
  c.link = 'up'
  rmSync(file)
  expect((await get(b)).response.status).toBe(404)
})

test('an instance without the file that has no place for readers does not hide the one that has it', async () => {
  const { a, b, root, token, get, add } = await three()
  // Large enough to be under way for as long as its readers do not read.
  const large = '019ab0c4-1e7f-7a37-9d1f-0f6a5f5e9c22'
  const bytes = Buffer.alloc(1_000_000)
  writeFileSync(join(root, 'b', `${large}.wav`), bytes)
  await add(large, bytes.length)
  const authorization = `Bearer ${token}`
  const slow = () =>
    b.app.request(`/api/v1/calls/${large}/recording`, { headers: { authorization } })
  const readers = await Promise.all(Array.from({ length: 64 }, slow))
  expect((await slow()).status).toBe(503)
  expect((await get(a)).response.status).toBe(200)
  await Promise.all(readers.map(async (reader) => reader.body?.cancel()))
})

test.each(['b', 'a'])(
  'readers of a recording of b that take nothing for a minute give up their places at %s',
  async (at) => {
    const { instances, root, token, time, add } = await three()
    const large = '019ab0c4-1e7f-7a37-9d1f-0f6a5f5e9c22'
    const bytes = Buffer.alloc(1_000_000)
    writeFileSync(join(root, 'b', `${large}.wav`), bytes)
    await add(large, bytes.length)
    const instance = instances.find(({ name }) => name === at)
    const slow = async () =>
      instance?.app.request(`/api/v1/calls/${large}/recording`, {
        headers: { authorization: `Bearer ${token}` },
      })
    const readers = await Promise.all(Array.from({ length: 64 }, slow))
    expect((await slow())?.status).toBe(503)
    // The disk answers between two steps.
    for (let seconds = 0; seconds < 61; seconds += 1) {
      await turn()
      time.advance(1_000)
    }
    // The minute begins when the disk has answered, which a busy machine makes late.
    const next = await eventually(async () => {
      time.advance(1_000)
      const response = await slow()
      expect(response?.status).toBe(200)
      return response
    })
    await Promise.all([...readers, next].map(async (each) => each?.body?.cancel().catch(ignored)))
  },
)

test('a recording is removed from the disk of its instance, whichever instance is asked, and not while that one is away', async () => {
  const { a, c, file, token, after, heard } = await three()
  const remove = () => a.request(path, { method: 'DELETE', token })
  c.link = 'silent'
  expect((await after(remove())).answer).toMatchObject({ status: 503, code: 'node_unreachable' })
  expect(existsSync(file)).toBe(true)
  c.link = 'up'
  expect((await remove()).data()).toEqual({ call_uuid: uuid, deleted: true })
  expect(existsSync(file)).toBe(false)
  expect((await remove()).status).toBe(404)
  expect(await heard()).toEqual(['DELETE 404', 'DELETE 200', 'DELETE 503'])
})

function opened() {
  const time = new ManualTime(0)
  const source = new Readable({ read: () => undefined })
  const seen = { cuts: 0 }
  const cut = (): void => void (seen.cuts += 1)
  const reader = streamedBody(source, { schedule: time.schedule, cut }).getReader()
  const read = async (text: string): Promise<void> => {
    source.push(Buffer.from(text))
    const { value } = await reader.read()
    expect(Buffer.from(value ?? []).toString()).toBe(text)
  }
  const isOver = (cuts: number): boolean =>
    seen.cuts === cuts && source.destroyed && time.waiting === 0
  return { time, source, reader, read, isOver }
}

test('a response whose source says nothing for ten seconds while it is waited for is cut', async () => {
  const { time, source, reader, read, isOver } = opened()
  await read('first')
  void reader.read()
  time.advance(9_999)
  expect(source.destroyed).toBe(false)
  time.advance(1)
  expect(isOver(1)).toBe(true)
})

test('a reader that takes nothing for a minute loses the rest, also before its first byte', async () => {
  const { time, source, read, isOver } = opened()
  await read('first')
  time.advance(59_999)
  expect(source.destroyed).toBe(false)
  time.advance(1)
  expect(isOver(1)).toBe(true)
  const other = opened()
  other.time.advance(60_000)
  expect(other.isOver(1)).toBe(true)
})

test('a reader that takes a little every now and then loses the rest after four hours', async () => {
  const { time, source, read, isOver } = opened()
  for (let minutes = 0; minutes < 4 * 60; minutes += 1) {
    expect(source.destroyed).toBe(false)
    await read('a')
    time.advance(30_000)
    await read('b')
    time.advance(30_000)
  }
  expect(isOver(1)).toBe(true)
})

test('a response whose source fails is cut, and has no text of the error in it', async () => {
  const { source, reader, read, isOver } = opened()
  await read('first')
  const rest = reader.read()
  source.destroy(new Error('the disk is gone'))
  await new Promise((resolve) => void setImmediate(resolve))
  expect(isOver(1)).toBe(true)
  await reader.cancel()
  expect((await rest).value).toBeUndefined()
})
