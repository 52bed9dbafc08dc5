import { expect, test } from 'vitest'
import type { SearchHit } from '../../../control/search/search-routes.ts'
import { activeCall } from '../../support/engine-views.ts'
import { joinInstances, type JoinedInstance } from '../../support/joined-nodes.ts'

const uuidOf = (index: number): string =>
  `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`

async function two() {
  const joined = await joinInstances(['a', 'b'])
  const [a, b] = joined.instances as [JoinedInstance, JoinedInstance]
  a.engine.activeCalls.push(activeCall({ callUuid: uuidOf(1), callerNumber: '4930100' }))
  const token = await joined.control.key()
  // The reads of an instance at its first request take real time.
  for (const instance of joined.instances) await instance.request('/api/v1/nodes', { token })
  const ask = async (instance: JoinedInstance, text: string, as = token) => {
    const target = `/api/v1/search?q=${encodeURIComponent(text)}`
    const { answer } = await joined.after(instance.request(target, { token: as }))
    expect(answer.status).toBe(200)
    const found = answer.data<SearchHit[]>()
    return {
      ids: found.filter(({ kind }) => kind === 'call').map(({ id }) => id),
      unreachable: answer.headers.get('x-unreachable-nodes'),
    }
  }
  return { ...joined, a, b, ask }
}

test('a live call of another instance is found by number, uuid and Call-ID, once', async () => {
  const { a, b, ask } = await two()
  b.engine.activeCalls.push(activeCall({ callUuid: uuidOf(2), calledNumber: '4930100' }))
  b.engine.calls.uuidOf = (callId) => (callId === 'live@phone' ? uuidOf(2) : undefined)
  for (const instance of [a, b]) {
    expect((await ask(instance, '4930100')).ids.toSorted()).toEqual([uuidOf(1), uuidOf(2)])
    expect((await ask(instance, '49301')).ids.toSorted()).toEqual([uuidOf(1), uuidOf(2)])
    expect((await ask(instance, uuidOf(2))).ids).toEqual([uuidOf(2)])
    expect((await ask(instance, 'live@phone')).ids).toEqual([uuidOf(2)])
  }
})

test('a tenant finds its own live calls of another instance only', async () => {
  const { a, b, control, ask } = await two()
  const tenantId = await control.tenant('acme')
  const other = await control.tenant('other')
  b.engine.activeCalls.push(
    activeCall({ callUuid: uuidOf(2), callerNumber: '4930100', tenantId }),
    activeCall({ callUuid: uuidOf(3), callerNumber: '4930100', tenantId: other }),
  )
  const own = await control.key({ tenant_slug: 'acme' })
  expect((await ask(a, '4930100', own)).ids).toEqual([uuidOf(2)])
})

test('a silent instance is named, and what the others have is found', async () => {
  const { a, b, ask } = await two()
  b.engine.activeCalls.push(activeCall({ callUuid: uuidOf(2), callerNumber: '4930100' }))
  b.link = 'silent'
  expect(await ask(a, '4930100')).toEqual({ ids: [uuidOf(1)], unreachable: 'b' })
})
