import { expect, test } from 'vitest'
import {
  joinInstances,
  type JoinedInstance,
  type JoinedInstances,
} from '../../support/joined-nodes.ts'

interface Told {
  readonly id: string | undefined
  readonly type: string
  readonly data: { readonly set_id?: number; readonly unreachable_nodes?: readonly string[] }
}

/** Reads the stream of an instance. */
async function read(
  { after }: Pick<JoinedInstances, 'after'>,
  instance: JoinedInstance,
  token: string,
  lastId?: string,
) {
  const response = await instance.app.request('/api/v1/events', {
    headers: {
      Authorization: `Bearer ${token}`,
      Accept: 'text/event-stream',
      ...(lastId !== undefined && { 'Last-Event-ID': lastId }),
    },
  })
  const body: ReadableStream<Uint8Array> | null = response.body
  const reader = body?.getReader()
  if (reader === undefined) throw new Error('no body')
  let greeted = false
  let text = ''
  const told: Told[] = []
  void (async () => {
    const decoder = new TextDecoder()
    for (;;) {
      const { value, done } = await reader.read()
      if (done) return
      text += decoder.decode(value, { stream: true })
      const blocks = text.split('\n\n')
      text = blocks.pop() ?? ''
      for (const block of blocks) {
        const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(block)?.[1]
        if (block.startsWith(': welcome') || block.includes('\n: welcome')) greeted = true
        const [id, type, data] = ['id', 'event', 'data'].map(field)
        if (type !== undefined && data !== undefined)
          told.push({ id, type, data: JSON.parse(data) as Told['data'] })
      }
    }
  })().catch(() => undefined)
  const when = async (condition: () => boolean): Promise<void> => {
    while (!condition()) await new Promise((resolve) => void setImmediate(resolve))
  }
  await after(when(() => greeted))
  return {
    told,
    sets: () => told.flatMap(({ data }) => (data.set_id === undefined ? [] : [data.set_id])),
    async until(count: number) {
      await when(() => told.length >= count)
      return told
    },
    close: () => reader.cancel(),
  }
}

const sorted = (numbers: readonly number[]): number[] => numbers.toSorted((a, b) => a - b)

const happens = (instance: JoinedInstance, setId: number, tenantId: number | null = null) => {
  instance.events.add({
    type: 'node.down',
    tenantId,
    setId,
    destination: 'sip:n',
    state: 'probing',
  })
}

async function three() {
  const joined = await joinInstances(['a', 'b', 'c'])
  const [a, b, c] = joined.instances as [JoinedInstance, JoinedInstance, JoinedInstance]
  const flush = (): void => {
    for (const { feed, hub } of joined.instances) {
      feed.flush()
      hub.flush()
    }
  }
  return { ...joined, a, b, c, flush, token: await joined.control.key() }
}

test('a reader at one instance is told what happens on all of them, and nothing from before', async () => {
  const { a, b, c, flush, token, ...joined } = await three()
  happens(b, 1)
  const reader = await read(joined, a, token)
  happens(a, 2)
  happens(b, 3)
  happens(c, 4)
  flush()
  await reader.until(3)
  expect(sorted(reader.sets())).toEqual([2, 3, 4])
})

test('a reader goes on at any instance behind the last event that it has, of each instance', async () => {
  const { a, b, c, flush, token, ...joined } = await three()
  const reader = await read(joined, a, token)
  for (const [index, instance] of [a, b, c, b].entries()) happens(instance, index + 1)
  flush()
  const told = await reader.until(4)
  await reader.close()
  const everything = reader.sets()
  for (const [index, { id }] of told.entries())
    for (const instance of [a, b, c]) {
      const next = await read(joined, instance, token, id)
      const had = everything.slice(0, index + 1)
      await next.until(everything.length - had.length)
      expect(next.told.map(({ type }) => type)).not.toContain('stream.gap')
      expect(sorted([...had, ...next.sets()])).toEqual([1, 2, 3, 4])
      await next.close()
    }
})

test('hundreds of events of another instance are listed, and told to a reader that goes on behind them', async () => {
  const { a, b, c, flush, token, ...joined } = await three()
  const reader = await read(joined, a, token)
  happens(b, 1)
  flush()
  const [first] = await reader.until(1)
  await reader.close()
  for (let setId = 2; setId <= 501; setId += 1) happens(b, setId)
  const wanted = Array.from({ length: 500 }, (_, index) => index + 2)
  const list = await c.request(`/api/v1/events?after=${first?.id}`, { token })
  const { events } = list.data<{ events: Told[] }>()
  expect(sorted(events.flatMap(({ data }) => data.set_id ?? []))).toEqual(wanted)
  const next = await read(joined, c, token, first?.id)
  await next.until(1)
  expect(next.told.map(({ type }) => type)).not.toContain('stream.gap')
  await next.until(500)
  expect(sorted(next.sets())).toEqual(wanted)
  await next.close()
})

test('a tenant is told its own events only, of whichever instance', async () => {
  const { a, b, c, flush, control, ...joined } = await three()
  const tenantId = await control.tenant('acme')
  const reader = await read(joined, a, await control.key({ tenant_slug: 'acme' }))
  happens(b, 1)
  happens(b, 2, tenantId)
  happens(c, 3, tenantId + 1)
  happens(c, 4, tenantId)
  flush()
  const told = await reader.until(2)
  expect(sorted(reader.sets())).toEqual([2, 4])
  happens(b, 5, tenantId)
  happens(b, 6)
  const again = await read(joined, b, await control.key({ tenant_slug: 'acme' }), told.at(-1)?.id)
  await again.until(1)
  expect(again.sets()).toEqual([5])
})

test('an instance that is silent is named, and a gap is told when it is heard again', async () => {
  const { a, b, c, flush, token, time, ...joined } = await three()
  b.link = 'silent'
  const reader = await read({ ...joined }, a, token)
  await reader.until(1)
  expect(reader.told).toEqual([
    { id: undefined, type: 'stream.partial', data: { unreachable_nodes: ['b'] } },
  ])
  happens(c, 1)
  flush()
  await reader.until(2)
  b.link = 'up'
  time.advance(1_000)
  flush()
  await reader.until(4)
  expect(reader.told.slice(2).map(({ type }) => type)).toEqual(['stream.gap', 'stream.partial'])
  expect(reader.told.at(-1)?.data).toEqual({ unreachable_nodes: [] })
  happens(b, 2)
  flush()
  await reader.until(5)
  expect(reader.sets()).toEqual([1, 2])
})

test('a connection that breaks costs no event', async () => {
  const { a, b, flush, token, time, ...joined } = await three()
  const reader = await read(joined, a, token)
  happens(b, 1)
  flush()
  await reader.until(1)
  b.feed.close()
  await reader.until(2)
  expect(reader.told.at(-1)?.data).toEqual({ unreachable_nodes: ['b'] })
  happens(b, 2)
  time.advance(1_000)
  flush()
  await reader.until(4)
  expect(reader.told.map(({ type }) => type)).not.toContain('stream.gap')
  expect(reader.sets()).toEqual([1, 2])
})

test('an id of another run, or one that is no id, tells a gap', async () => {
  const { a, token, ...joined } = await three()
  for (const id of ['x', 'a/zzz-1,b/zzz-1,c/zzz-1', 'a/1-1', 'a/1-1,'.repeat(2_000), '%/,-']) {
    const reader = await read(joined, a, token, id)
    await reader.until(1)
    expect(reader.told[0]?.type).toBe('stream.gap')
    await reader.close()
  }
})

test('instances are followed only while there are readers', async () => {
  const { a, b, token, time, flush, ...joined } = await three()
  expect(b.received).toEqual([])
  const reader = await read(joined, a, token)
  const asked = b.received.length
  expect(asked).toBeGreaterThan(0)
  await reader.close()
  a.hub.keepAlive()
  time.advance(30_000)
  a.hub.keepAlive()
  b.feed.close()
  time.advance(10_000)
  flush()
  expect(b.received).toHaveLength(asked)
})
