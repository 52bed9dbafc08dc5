/** The bytes of a report that is short. */
export async function bytesOf(pieces: AsyncGenerator<Uint8Array, void>): Promise<Buffer> {
  const blocks: Uint8Array[] = []
  for await (const piece of pieces) blocks.push(piece)
  return Buffer.concat(blocks)
}
