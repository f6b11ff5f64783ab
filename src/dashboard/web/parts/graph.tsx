import type { GraphAnswer } from '../../protocol.js'
import { visible } from '../format/text.js'
import { jobHref, jobsHref } from '../route.js'
import { NODE_HEIGHT, NODE_WIDTH, placeGraph } from './graph-layout.js'
import { Glyph } from './state.js'

/** Jobs before and after a job. Each node is a link, so the keyboard walks it in reading order. */
export function Graph({ answer, id }: { answer: GraphAnswer; id: string }) {
  const { nodes, edges, width, height } = placeGraph(answer)
  return (
    <div class="graph" role="group" aria-label="Jobs before and after this one">
      <div class="graph-box" style={{ width: `${width}px`, height: `${height}px` }}>
        <svg width={width} height={height} aria-hidden="true">
          {edges.map(({ key, path }) => (
            <path key={key} d={path} />
          ))}
        </svg>
        {nodes.map(({ id: node, job, title, state, x, y }) => (
          <a
            key={node}
            href={jobHref(node)}
            class={`graph-node${node === id ? ' self' : ''}`}
            aria-current={node === id}
            title={`${job}${title === null ? '' : ` · ${visible(title)}`}, ${state}`}
            style={{ left: `${x}px`, top: `${y}px`, width: `${NODE_WIDTH}px`, height: `${NODE_HEIGHT}px` }}
          >
            <Glyph name={state} />
            <span class="cut">
              {job}
              {title === null ? '' : ` · ${visible(title)}`}
            </span>
            <span class="visually-hidden">{state}</span>
          </a>
        ))}
      </div>
      <p class="graph-more">
        {answer.moreParents === 0 ? null : <span class="quiet">+{answer.moreParents} more before it </span>}
        {answer.moreChildren === 0 ? null : answer.childrenQuery === null ? (
          <span class="quiet">+{answer.moreChildren} more after it</span>
        ) : (
          <a href={jobsHref(answer.childrenQuery)}>+{answer.moreChildren} more after it</a>
        )}
      </p>
    </div>
  )
}
