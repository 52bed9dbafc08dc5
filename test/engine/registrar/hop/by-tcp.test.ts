/** A phone that has registered over TCP at another node: on real sockets. */
import { onTestFinished, test } from 'vitest'
import { startTwoInstances } from '../../../support/two-nodes.ts'

test('is absent at once when its connection is closed: 480', async () => {
  const nodes = await startTwoInstances({ withTcp: true })
  onTestFinished(() => nodes.stop())
  const phone = await nodes.phoneByTcp()
  phone.hangUp()
  await nodes.b.until(() => nodes.b.server.stats()['connections'] === 0)
  const { caller } = await nodes.dial()
  await caller.next('480 INVITE')
})
