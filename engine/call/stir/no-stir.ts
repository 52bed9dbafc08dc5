/** Stands for signing and verifying where there is neither a key nor an authority. */
import type { StirPort } from '../../../schema/contracts/stir.ts'

export const noStir: StirPort = {
  canSign: () => false,
  sign: () => ({ kind: 'unsigned', why: 'there is no key' }),
  verify: () => ({ verification: 'none' }),
  telemetry: () => ({}),
}
