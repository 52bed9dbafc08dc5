/** The order of the files of a run: with the longest at the end, one worker would go on alone. */
import { relative } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Seconds, of those that take long for their size. A fresh checkout knows no earlier run. */
const seconds: Readonly<Record<string, number>> = {
  'test/process/outlive.test.ts': 45,
  'test/console/console.test.ts': 45,
  'test/sipp/dialog.test.ts': 36,
  'test/sipp/trunks.test.ts': 20,
  'test/sipvicious/scanners.test.ts': 20,
  'test/sipp/inbound.test.ts': 18,
  'test/console/administration.test.ts': 35,
  'test/sipp/failover.test.ts': 25,
  'test/sipp/phones.test.ts': 35,
  'test/process/failover.test.ts': 30,
  'test/baresip/nodes.test.ts': 35,
  'test/rtpengine/call.test.ts': 22,
  'test/rtpengine/recording.test.ts': 30,
  'test/rtpengine/spy.test.ts': 30,
  'test/process/demo.test.ts': 25,
  'test/process/drachtio-server.test.ts': 25,
  'test/simulation/call-control.test.ts': 25,
  'test/sockets/balancer.test.ts': 20,
  'test/process/external-ocs.test.ts': 20,
  'test/engine/shares/shared-wallets.test.ts': 20,
  'test/webphone/webphone.test.ts': 20,
}

/** Or as long as they took in the run before. */
const { sort: bySize } = BaseSequencer.prototype

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const usual = await bySize.call(this, files)
    return usual.toSorted(
      (one, other) =>
        one.project.config.sequence.groupOrder - other.project.config.sequence.groupOrder ||
        secondsOf(other) - secondsOf(one),
    )
  }
}

const secondsOf = ({ moduleId }: TestSpecification): number =>
  seconds[relative(process.cwd(), moduleId)] ?? 0
