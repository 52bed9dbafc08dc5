/** The order of the files of a run: with the longest at the end, one worker would go on alone. */
import { relative } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Seconds, of those that take long for their size. A fresh checkout knows no earlier run. */
const seconds: Readonly<Record<string, number>> = {
  'test/console/console.test.ts': 40,
  'test/process/instances.test.ts': 30,
  'test/baresip/instances.test.ts': 30,
  'test/simulation/call-control.test.ts': 25,
  'test/process/start.test.ts': 25,
  'test/process/outlive.test.ts': 25,
  'test/console/administration.test.ts': 25,
  'test/console/axe.test.ts': 25,
  'test/sockets/balancer.test.ts': 20,
  'test/engine/shares/shared-wallets.test.ts': 20,
  'test/process/socket-activation.test.ts': 20,
  'test/process/package.test.ts': 20,
  'test/process/demo.test.ts': 20,
  'test/process/failover.test.ts': 20,
  'test/console/now.test.ts': 20,
  'test/console/trunk-setup.test.ts': 20,
  'test/console/phone-setup.test.ts': 20,
  'test/rtpengine/recording.test.ts': 20,
  'test/sipvicious/scanners.test.ts': 20,
  'test/process/launch.test.ts': 15,
  'test/process/attack.test.ts': 15,
  'test/process/sip-server-package.test.ts': 15,
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
