import type { GraphAnswer, GraphNode } from '../../protocol.js'

/** A node as it is drawn, in pixels from the left top. */
export interface PlacedNode extends GraphNode {
  readonly x: number
  readonly y: number
}

export interface PlacedGraph {
  readonly nodes: readonly PlacedNode[]
  readonly edges: readonly { readonly key: string; readonly path: string }[]
  readonly width: number
  readonly height: number
}

export const NODE_WIDTH = 184
export const NODE_HEIGHT = 32
const COLUMN = NODE_WIDTH + 56
const ROW = NODE_HEIGHT + 12

/** Parents at the left, children at the right, each generation a column; columns are centred on the tallest. */
export function placeGraph({ nodes, edges }: Pick<GraphAnswer, 'nodes' | 'edges'>): PlacedGraph {
  const layers = [...new Set(nodes.map(({ layer }) => layer))].sort((a, b) => a - b)
  const columns = layers.map((layer) => nodes.filter((node) => node.layer === layer))
  const tallest = Math.max(0, ...columns.map(({ length }) => length))
  const height = tallest * ROW - (ROW - NODE_HEIGHT)
  const placed = columns.flatMap((column, c) => {
    const top = (height - (column.length * ROW - (ROW - NODE_HEIGHT))) / 2
    return column.map((node, r): PlacedNode => ({ ...node, x: c * COLUMN, y: Math.round(top + r * ROW) }))
  })
  const byId = new Map(placed.map((node) => [node.id, node]))
  return {
    nodes: placed,
    edges: edges.flatMap(([parent, child]) => {
      const [from, to] = [byId.get(parent), byId.get(child)]
      return from === undefined || to === undefined ? [] : [{ key: `${parent}>${child}`, path: pathOf(from, to) }]
    }),
    width: Math.max(0, layers.length * COLUMN - (COLUMN - NODE_WIDTH)),
    height,
  }
}

function pathOf(from: PlacedNode, to: PlacedNode): string {
  const [x1, y1] = [from.x + NODE_WIDTH, from.y + NODE_HEIGHT / 2]
  const [x2, y2] = [to.x, to.y + NODE_HEIGHT / 2]
  const middle = (x1 + x2) / 2
  return `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`
}
