/** A phone that has registered over TCP at another instance: on real sockets. */
import { onTestFinished, test } from 'vitest'
import { startTwoInstances } from '../../../support/two-nodes.ts'

test('is absent at once when its connection is closed: 480', async () => {
  const instances = await startTwoInstances({ withTcp: true })
  onTestFinished(() => instances.stop())
  const phone = await instances.phoneByTcp()
  phone.hangUp()
  await instances.b.until(() => instances.b.server.stats()['connections'] === 0)
  const { caller } = await instances.dial()
  await caller.next('480 INVITE')
})
