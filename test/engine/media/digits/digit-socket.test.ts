import { expect, test } from 'vitest'
import { openDigitSocket } from '../../../../engine/media/digits/heard-digits.ts'

test('a port that cannot be bound is told', async () => {
  const open = openDigitSocket({ host: '192.0.2.1', port: 9 }, () => undefined)
  await expect(open).rejects.toMatchObject({ code: 'EADDRNOTAVAIL' })
})
