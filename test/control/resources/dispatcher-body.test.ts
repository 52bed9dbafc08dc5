import { expect, test } from 'vitest'
import { openResources } from '../../support/resources.ts'

test.each([5, '5', 'round robin'])(
  'of the algorithm %j it is told which there are',
  async (algorithm) => {
    const set = { endpoint_name: 'pbx', algorithm, set_id: 7, nodes: [{ host: '10.0.0.1' }] }
    const { body } = await (await openResources()).call('POST', '/dispatcher', set)
    expect(body).toMatchObject({
      details: [{ path: 'algorithm', message: expect.stringContaining('must be 8 (failover), 4') }],
    })
  },
)
